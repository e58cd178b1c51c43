// From a recipe to a run: context, mesh, task, run folder, console, events, report.
#pragma once

#include "parallel/comm/communicator.h"
#include "recipes/recipe.h"

namespace obelisk {

// What --dry-run prints: model, parameters, memory and work of a step. Reads the data, takes no
// memory for weights.
std::string describe_plan(const LoadedRecipe& loaded, int num_ranks, int ranks_on_node);

// Runs the recipe that was read from `file` to its end. Returns the process's exit code: 0, or 143
// after SIGTERM.
int run_recipe(const std::string& file, const LoadedRecipe& loaded,
               const parallel::MpiSession& mpi);

}  // namespace obelisk
