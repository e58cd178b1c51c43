// Recipes: one file that says everything about a run. Loads, completes and checks it.
#pragma once

#include <span>
#include <string>

#include "framework/config/binder.h"
#include "recipes/recipe.pb.h"

namespace obelisk {

struct LoadedRecipe {
  recipe::Recipe recipe;
  KeyPlaces places;  // where each key was written, for messages
};

// Binds the file and the overrides ("section.key=value" each), sets run.folder to
// "runs/<name of the file>" unless it is given, and checks every rule over several keys that does
// not depend on the number of ranks. Throws RecipeError that lists all errors.
LoadedRecipe load_recipe(const std::string& file, std::span<const std::string> overrides);

// The rules over several keys, and those that need the number of ranks started as well. Each throws
// RecipeError that lists all broken ones. load_recipe calls the first.
void validate(const LoadedRecipe& loaded);
void validate(const LoadedRecipe& loaded, int num_ranks);

}  // namespace obelisk
