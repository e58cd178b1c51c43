// From a recipe to a run: context, mesh, task, run folder, console, events, report.
#pragma once

#include "parallel/comm/communicator.h"
#include "recipes/recipe.h"

namespace obelisk {

// Runs the recipe that was read from `file` to its end. Returns the process's exit code: 0, or 143
// after SIGTERM.
int run_recipe(const std::string& file, const LoadedRecipe& loaded,
               const parallel::MpiSession& mpi);

}  // namespace obelisk
