// Composition: a section that begins with "use: FILE".
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/base/error.h"
#include "tests/config/support.h"

namespace obelisk {
namespace {

constexpr const char* kModel =
    "kind: gpt2\nnum_layers: 2\nnum_heads: 4\nwidth: 32\ncontext_length: 16\n";

std::string using_recipe(const std::string& section) { return recipe_with("model:\n" + section); }

struct Used {
  recipe::Recipe recipe;
  KeyPlaces places;
  std::string errors;
};

Used bind_in(const TempFolder& folder, const std::string& yaml,
             const std::vector<std::string>& overrides = {}) {
  Used used;
  try {
    used.places = bind_recipe(folder.write("r.yaml", yaml), overrides, used.recipe);
  } catch (const RecipeError& error) {
    used.errors = folder.shortened(error.what());
  }
  return used;
}

TEST(Use, OwnKeysWin) {
  const TempFolder folder;
  folder.write("m.yaml", std::string(kModel) + "dropout: 0.5\n");
  const Used used = bind_in(folder, using_recipe("  use: m.yaml\n  width: 64\n"));
  EXPECT_EQ(used.errors, "");
  EXPECT_EQ(used.recipe.model().width(), 64);
  EXPECT_EQ(used.recipe.model().num_heads(), 4);
  EXPECT_EQ(used.recipe.model().dropout(), 0.5);
  EXPECT_EQ(folder.shortened(to_string(used.places.at("model.width"))), "r.yaml:3:10");
  EXPECT_EQ(folder.shortened(to_string(used.places.at("model.num_heads"))), "m.yaml:3:12");
}

TEST(Use, FindsFilesBesideTheRecipeThenInTheWorkingDirectory) {
  const TempFolder folder;
  // The tests run in the root of the repository.
  EXPECT_EQ(bind_in(folder, using_recipe("  use: configs/model/gpt_tiny.yaml\n")).errors, "");
  folder.write("configs/model/gpt_tiny.yaml", std::string(kModel) + "dropout: 0.25\n");
  const Used used = bind_in(folder, using_recipe("  use: configs/model/gpt_tiny.yaml\n"));
  EXPECT_EQ(used.recipe.model().dropout(), 0.25);
  const std::string absolute = folder.write("else/m.yaml", std::string(kModel) + "dropout: 0.75\n");
  const Used by_root = bind_in(folder, using_recipe("  use: " + absolute + "\n"));
  EXPECT_EQ(by_root.recipe.model().dropout(), 0.75);
}

TEST(Use, CommandLineReplacesIt) {
  const TempFolder folder;
  folder.write("m.yaml", kModel);
  folder.write("n.yaml", std::string(kModel) + "dropout: 0.25\n");
  const std::string yaml = using_recipe("  use: m.yaml\n  width: 64\n");
  const Used used = bind_in(folder, yaml, {"model.use=n.yaml", "model.num_heads=8"});
  EXPECT_EQ(used.errors, "");
  EXPECT_EQ(used.recipe.model().dropout(), 0.25);
  EXPECT_EQ(used.recipe.model().width(), 64);
  EXPECT_EQ(used.recipe.model().num_heads(), 8);
  // Also where the file has no such section, or no use in it.
  folder.write("mesh.yaml", "dp: 3\n");
  EXPECT_EQ(bind_in(folder, recipe_with(""), {"mesh.use=mesh.yaml"}).recipe.mesh().dp(), 3);
  EXPECT_EQ(bind_in(folder, recipe_with(""), {"model.use=n.yaml"}).recipe.model().dropout(), 0.25);
}

TEST(Use, ErrorsInsideTheFileCarryItsPlace) {
  const TempFolder folder;
  folder.write("m.yaml", std::string(kModel) + "widht: 64\nwidth: 8\nuse: n.yaml\nsteps: 5\n");
  EXPECT_EQ(bind_in(folder, using_recipe("  use: m.yaml\n  dropout: 1\n")).errors,
            "r.yaml:3:12: 'model.dropout' must be in [0, 1); got 1\n"
            "m.yaml:6:1: unknown key 'widht' in 'model'; did you mean 'width'?\n"
            "m.yaml:7:1: 'width' is given twice in 'model'; first in line 4; keep one\n"
            "m.yaml:8:1: a file named by 'use' has no 'use' itself; write the keys out\n"
            "m.yaml:9:1: unknown key 'steps' in 'model'; 'steps' belongs in 'train'");
}

TEST(Use, ErrorsAboutTheFile) {
  const TempFolder folder;
  const auto errors = [&](const std::string& content) {
    folder.write("m.yaml", content);
    return bind_in(folder, using_recipe("  use: m.yaml\n")).errors;
  };
  EXPECT_EQ(errors(""), "m.yaml:1:1: the file is empty; write 'key: value' lines");
  EXPECT_EQ(errors("- a\n"),
            "m.yaml:1:1: a file named by 'use' is a map of the keys of 'model'; got a list");
  EXPECT_EQ(errors("kind: {\n"), "m.yaml:2:1: not valid YAML: a '{' has no '}'");
  EXPECT_EQ(errors("model:\n  kind: gpt2\n"),
            "m.yaml:1:1: unknown key 'model' in 'model'; the keys of 'model' stand directly in it");
  EXPECT_EQ(
      errors("kind: gpt2\n").substr(0, 88),
      "r.yaml:1:1: 'model.num_layers' is required (transformer blocks); write it in 'model' or ");
  std::filesystem::create_directories(folder.path("sub"));
  EXPECT_EQ(bind_in(folder, using_recipe("  use: sub\n")).errors,
            "r.yaml:2:8: 'model.use' must name a file; tried 'sub' and 'sub'");
}

TEST(Use, ErrorsAboutTheKey) {
  const TempFolder folder;
  folder.write("m.yaml", kModel);
  const auto errors = [&](const std::string& head, const std::vector<std::string>& overrides = {}) {
    return bind_in(folder, recipe_with(head), overrides).errors;
  };
  EXPECT_EQ(errors("mesh:\n  use: none.yaml"),
            "r.yaml:2:8: 'mesh.use' must name a file; tried 'none.yaml' and 'none.yaml'");
  EXPECT_EQ(errors("mesh:\n  use: /none.yaml"),
            "r.yaml:2:8: 'mesh.use' must name a file; tried '/none.yaml'");
  EXPECT_EQ(
      errors("", {"mesh.use=none.yaml"}),
      "--set mesh.use=none.yaml: 'mesh.use' must name a file; tried 'none.yaml' and 'none.yaml'");
  EXPECT_EQ(
      errors("", {"msh.use=none.yaml"}),
      "--set msh.use=none.yaml: unknown section 'msh' at the top level; did you mean 'mesh'?");
  EXPECT_EQ(errors("", {"mesh.use="}),
            "--set mesh.use=: 'mesh.use' must be the path of a file; got nothing");
  EXPECT_EQ(errors("mesh:\n  use:"),
            "r.yaml:2:3: 'mesh.use' must be the path of a file; got nothing");
  EXPECT_EQ(errors("mesh:\n  use: \"\""),
            "r.yaml:2:8: 'mesh.use' must be the path of a file; got nothing");
  EXPECT_EQ(errors("mesh:\n  use: [a]"),
            "r.yaml:2:8: 'mesh.use' must be the path of a file; got a list");
  EXPECT_EQ(errors("use: m.yaml"),
            "r.yaml:1:1: 'use' stands inside a section; got it at the top level");
  EXPECT_EQ(errors("mesh:\n  dp: 1\n  use: m.yaml"),
            "r.yaml:3:3: 'use' must be the first key of 'mesh': the others win over it");
  EXPECT_EQ(errors("model:\n  use: m.yaml\n  use: m.yaml"),
            "r.yaml:3:3: 'use' is given twice in 'model'; first in line 2; keep one");
}

}  // namespace
}  // namespace obelisk
