// The recipes and building blocks of the repository. The tests run in its root.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/config/support.h"

namespace obelisk {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> yaml_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  return files;
}

std::string content(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(Shipped, EveryRecipeLoadsOnOneAndTwoRanks) {
  const std::vector<std::string> files = yaml_files("recipes");
  EXPECT_GE(files.size(), 3u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    std::vector<std::string> overrides;
    if (content(file).find("--set data.path=") != std::string::npos) {
      overrides.push_back("data.path=a.txt");
    }
    const LoadedRecipe loaded = load_recipe(file, overrides);
    validate(loaded, 1);
    validate(loaded, 2);
    EXPECT_EQ(loaded.recipe.run().folder(), "runs/" + fs::path(file).stem().string());
    // Opens with what it is, a command and what to expect.
    EXPECT_TRUE(content(file).starts_with("# "));
    EXPECT_NE(content(file).find("\n# Expect: "), std::string::npos);
  }
}

TEST(Shipped, SmokeRecipesBringTheirData) {
  for (const std::string& file : yaml_files("recipes/smoke")) {
    const LoadedRecipe loaded = load_recipe(file, {});
    EXPECT_TRUE(fs::is_regular_file(loaded.recipe.data().path())) << file;
  }
}

TEST(Shipped, EveryBuildingBlockIsASection) {
  for (const std::string& file : yaml_files("configs")) {
    const std::string section = fs::relative(file, "configs").begin()->string();
    EXPECT_EQ(load_errors(recipe_with(""), {section + ".use=" + file}), "") << file;
  }
}

// The configuration of nanoGPT's published CPU run; every number of it matters to the reference
// loss.
TEST(Shipped, ShakespeareIsTheReferenceConfiguration) {
  const std::vector<std::string> overrides = {"data.path=a.txt"};
  const recipe::Recipe r = load_recipe("recipes/llm/shakespeare_char.yaml", overrides).recipe;
  EXPECT_EQ(r.seed(), 1337);
  EXPECT_EQ(r.model().num_layers(), 4);
  EXPECT_EQ(r.model().num_heads(), 4);
  EXPECT_EQ(r.model().width(), 128);
  EXPECT_EQ(r.model().context_length(), 64);
  EXPECT_EQ(r.model().dropout(), 0);
  EXPECT_FALSE(r.model().bias());
  EXPECT_EQ(r.model().activation(), recipe::Model::GELU_ERF);
  EXPECT_TRUE(r.model().tied_head());
  EXPECT_EQ(r.model().layer_norm_epsilon(), 1e-5);
  EXPECT_EQ(r.model().init_std(), 0.02);
  EXPECT_EQ(r.tokenizer().kind(), recipe::Tokenizer::CHARACTER);
  EXPECT_EQ(r.data().validation_fraction(), 0.1);
  EXPECT_EQ(r.batch().sequences(), 12);
  EXPECT_EQ(r.batch().sequence_length(), 64);
  EXPECT_EQ(r.batch().micro_batch_size(), 0);
  EXPECT_EQ(r.optimizer().peak_lr(), 1e-3);
  EXPECT_EQ(r.optimizer().min_lr(), 1e-4);
  EXPECT_EQ(r.optimizer().beta1(), 0.9);
  EXPECT_EQ(r.optimizer().beta2(), 0.99);
  EXPECT_EQ(r.optimizer().epsilon(), 1e-8);
  EXPECT_EQ(r.optimizer().weight_decay(), 0.1);
  EXPECT_EQ(r.optimizer().grad_clip_norm(), 1.0);
  EXPECT_EQ(r.optimizer().schedule(), recipe::Optimizer::COSINE);
  EXPECT_EQ(r.optimizer().warmup_steps(), 100);
  EXPECT_EQ(r.optimizer().decay_steps(), 2000);
  EXPECT_EQ(r.train().steps(), 2000);
  EXPECT_EQ(r.train().validation_sequences(), 0);
  EXPECT_EQ(r.train().precision(), recipe::Train::F32);
}

}  // namespace
}  // namespace obelisk
