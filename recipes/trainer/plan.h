// What a run is going to be, before anything big is built: its data, its sizes, and whether it
// fits.
#pragma once

#include <memory>

#include "parallel/tasks/memory_plan.h"
#include "recipes/recipe.h"

namespace obelisk {

struct RunPlan {
  std::shared_ptr<const Tokenizer> tokenizer;
  TextData data;
  parallel::Gpt2Config model;
  parallel::PretrainOptions options;
  parallel::MemoryPlan memory;  // of a rank
  int64_t memory_limit = 0;     // bytes a rank may take
};

// Reads and splits the data. Throws what the data, the prompt or the sizes make impossible:
// IoError, ValueError, and OutOfMemory when the run needs more than a rank may take.
RunPlan make_plan(const recipe::Recipe& recipe, int num_ranks, int ranks_on_node);

// What --dry-run prints: model, parameters, memory and work of a step.
std::string describe_plan(const LoadedRecipe& loaded, int num_ranks, int ranks_on_node);

}  // namespace obelisk
