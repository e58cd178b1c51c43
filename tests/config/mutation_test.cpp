// Random damage to a valid recipe: the binder returns or throws RecipeError whose every line begins
// with a place, whatever the bytes. The seed is fixed; sanitizer builds look for the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "framework/base/error.h"
#include "framework/config/text.h"
#include "framework/config/yaml_tree.h"
#include "tests/config/support.h"

namespace obelisk {
namespace {

constexpr int kRounds = 400;

const std::string kRecipe =
    "# comment\n"
    "task: pretrain\n"
    "seed: 7\n"
    "model:\n"
    "  use: configs/model/gpt_tiny.yaml\n"
    "  dropout: 0.5   # half\n"
    "tokenizer: {kind: \"char\"}\n"
    "data: {path: 'a.txt', validation_fraction: 1.0e-1}\n"
    "batch:\n"
    "  sequences: 4\n"
    "  sequence_length: 16\n"
    "optimizer: {peak_lr: 0.001, schedule: constant}\n"
    "train: {steps: 10}\n"
    "sample:\n"
    "  tokens: 5\n"
    "  prompt: |\n"
    "    In the\n"
    "    beginning\n";

// Pieces that matter to YAML or to the binder.
const std::vector<std::string> kPieces = {":",
                                          ": ",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          "\n",
                                          "\n  ",
                                          "\t",
                                          "#",
                                          "'",
                                          "\"",
                                          "\\",
                                          "&a ",
                                          "*a",
                                          "!",
                                          "!!x ",
                                          "|",
                                          ">",
                                          "-",
                                          "- ",
                                          "---\n",
                                          "...\n",
                                          "? ",
                                          "<<: ",
                                          "%",
                                          "@",
                                          "`",
                                          "~",
                                          "null",
                                          "0",
                                          "010",
                                          "1e999",
                                          "-1",
                                          ".nan",
                                          "yes",
                                          "use:",
                                          "use",
                                          "\r",
                                          "\xFF",
                                          "\xC3",
                                          "\xEF\xBB\xBF",
                                          "%YAML 1.2\n",
                                          "seed: 1\n",
                                          "model",
                                          std::string(1, '\0'),
                                          std::string(300, '['),
                                          std::string(300, 'x'),
                                          "99999999999999999999"};

// UTF-8 without control bytes.
bool is_clean(const std::string& line) {
  const bool control =
      std::any_of(line.begin(), line.end(), [](char c) { return c >= 0 && c < 32; });
  return !control && invalid_utf8(line) == std::string::npos;
}

std::string damaged(std::mt19937& random) {
  std::string text = kRecipe;
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  for (size_t n = 1 + below(4); n > 0 && !text.empty(); --n) {
    const size_t at = below(text.size());
    const size_t length = below(std::min<size_t>(40, text.size() - at) + 1);
    switch (below(5)) {
      case 0:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 1:
        text.replace(at, 1, kPieces[below(kPieces.size())]);
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:  // another part of the text once more
        text.insert(below(text.size()), text.substr(at, length));
        break;
      default:
        text[at] = static_cast<char>(random());
    }
  }
  return text;
}

TEST(Mutation, NeverCrashesAndAlwaysNamesAPlace) {
  const TempFolder folder;
  std::mt19937 random(20240601);
  int loaded = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = damaged(random);
    const std::string file = folder.write("r.yaml", text);
    try {
      const LoadedRecipe recipe = load_recipe(file, {});
      validate(recipe, 2);
      resolved_recipe(recipe.recipe);
      ++loaded;
    } catch (const RecipeError& error) {
      std::istringstream lines(folder.shortened(error.what()));
      for (std::string line; std::getline(lines, line);) {
        const bool placed = line.starts_with("r.yaml:") || line.starts_with("configs/model/");
        ASSERT_TRUE(placed) << "round " << i << ": " << line << "\n" << text;
        ASSERT_TRUE(is_clean(line)) << "round " << i << ": " << line << "\n" << text;
      }
    }
  }
  // Damage in a comment or a value's spelling does no harm, most other damage does.
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, kRounds / 2);
}

// The parser alone, in memory and so many times more.
TEST(Mutation, TheParserNeverCrashes) {
  std::mt19937 random(5);
  int parsed = 0;
  for (int i = 0; i < 15 * kRounds; ++i) {
    const std::string text = damaged(random);
    Diagnostics errors;
    const bool whole = parse_yaml("r.yaml", text, errors).has_value();
    ASSERT_TRUE(whole || !errors.empty()) << "round " << i << "\n" << text;
    parsed += whole;
  }
  EXPECT_GT(parsed, 0);
}

TEST(Mutation, OverridesNeverCrash) {
  std::mt19937 random(11);
  const std::string yaml = recipe_with("");
  for (int i = 0; i < kRounds / 2; ++i) {
    std::string text;
    for (size_t n = random() % 6; n > 0; --n) text += kPieces[random() % kPieces.size()];
    const std::vector<std::string> keys = {"", "model.",
                                           "train.steps=", "sample.prompt=", "mesh.use="};
    const std::string override = keys[random() % keys.size()] + text;
    const std::string errors = bind_errors(yaml, {override});
    EXPECT_TRUE(errors.empty() || errors.starts_with("--set ")) << errors;
    EXPECT_EQ(errors.find('\n'), std::string::npos) << errors;
    EXPECT_TRUE(is_clean(errors)) << errors;
  }
}

}  // namespace
}  // namespace obelisk
