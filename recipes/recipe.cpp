#include "recipes/recipe.h"

#include <filesystem>

namespace obelisk {

LoadedRecipe load_recipe(const std::string& file, std::span<const std::string> overrides) {
  LoadedRecipe loaded;
  loaded.places = bind_recipe(file, overrides, loaded.recipe);
  if (loaded.recipe.run().folder().empty()) {
    loaded.recipe.mutable_run()->set_folder("runs/" + std::filesystem::path(file).stem().string());
  }
  validate(loaded);
  return loaded;
}

}  // namespace obelisk
