// The resolved recipe reads back to the same values, and the help says what the schema says.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "framework/base/error.h"
#include "tests/config/support.h"

namespace obelisk {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::HasSubstr;
using testing::StartsWith;

recipe::Recipe bound(const std::string& yaml) {
  const TempFolder folder;
  recipe::Recipe recipe;
  bind_recipe(folder.write("r.yaml", yaml), {}, recipe);
  return recipe;
}

void expect_round_trip(const recipe::Recipe& recipe) {
  const std::string text = resolved_recipe(recipe);
  const recipe::Recipe again = bound(text);
  EXPECT_TRUE(MessageDifferencer::Equivalent(recipe, again)) << text;
  EXPECT_EQ(resolved_recipe(again), text);
}

TEST(ResolvedRecipe, ReadsBackToTheSameValues) {
  expect_round_trip(bound(recipe_with("")));
  expect_round_trip(
      bound(recipe_with("seed: 9223372036854775807\n"
                        "tokenizer: {kind: byte}\n"
                        "data: {path: \"a: b # c\", validation_fraction: 0.123456789}\n"
                        "optimizer: {peak_lr: 1.0e-300, epsilon: 3.0e-7}\n"
                        "mesh: {dp: 2}\n")));
}

TEST(ResolvedRecipe, ReadsAnyNumberBack) {
  recipe::Recipe recipe = bound(recipe_with(""));
  std::mt19937_64 random(3);
  std::vector<double> values = {0,         std::numeric_limits<double>::min(), 1e15, 1e16,   1e17,
                                123456789, std::numeric_limits<double>::max(), 0.1,  1.0 / 3};
  for (int i = 0; i < 100; ++i) {
    values.push_back(
        std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 900) - 500));
  }
  for (const double value : values) {
    recipe.mutable_sample()->set_temperature(value);
    EXPECT_EQ(bound(resolved_recipe(recipe)).sample().temperature(), value);
  }
}

TEST(ResolvedRecipe, ReadsAnyTextBack) {
  recipe::Recipe recipe = bound(recipe_with(""));
  std::mt19937 random(5);
  std::vector<std::string> texts = {"",
                                    "yes",
                                    "null",
                                    "~",
                                    "12",
                                    "1e5",
                                    "0x10",
                                    ".inf",
                                    "-",
                                    "- a",
                                    "# c",
                                    "a #b",
                                    "a: b",
                                    "{a}",
                                    "[a]",
                                    "*a",
                                    "&a",
                                    "!a",
                                    "%a",
                                    "@a",
                                    "`a",
                                    "'",
                                    "\"",
                                    "\\",
                                    "\\n",
                                    "\n",
                                    "\r\n",
                                    "\t",
                                    " a ",
                                    "---",
                                    "...",
                                    "<<",
                                    "?",
                                    ":",
                                    "|",
                                    ">",
                                    "a\n\nb",
                                    "\x7f",
                                    "\x1b",
                                    "\xC2\x85",
                                    "\xE2\x80\xA8",
                                    "\xEF\xBB\xBF",
                                    "\xF0\x9F\x98\x80"};
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (size_t n = random() % 12; text.size() < n;) text += static_cast<char>(1 + random() % 127);
    texts.push_back(text);
  }
  for (const std::string& text : texts) {
    recipe.mutable_sample()->set_prompt(text);
    EXPECT_EQ(bound(resolved_recipe(recipe)).sample().prompt(), text) << resolved_recipe(recipe);
  }
}

TEST(ResolvedRecipe, ShowsEveryKeyWithHelp) {
  const std::string text = resolved_recipe(bound(recipe_with("")));
  EXPECT_THAT(text, StartsWith("# Resolved recipe: every key with the value in effect.\n"
                               "task: pretrain                        # what the run does; "));
  EXPECT_THAT(text, HasSubstr("\nmodel:                                # the network\n"
                              "  kind: gpt2                          # architecture; "));
  EXPECT_THAT(text, HasSubstr("\n  epsilon: 1e-08                      # added to the root of the "
                              "second moment\n"));
  EXPECT_THAT(text, HasSubstr("\n  prompt: \"\\n\"                        # text that the sample"));
}

TEST(ResolvedRecipe, MissingRequiredKeysAreComments) {
  EXPECT_THAT(
      resolved_recipe(recipe::Recipe()),
      HasSubstr("\n#   num_layers:                       # required: transformer blocks\n"));
}

std::string help(const std::string& section) {
  try {
    return recipe_help(*recipe::Recipe::descriptor(), section);
  } catch (const RecipeError& error) {
    return std::string("error: ") + error.what();
  }
}

TEST(RecipeHelp, ShowsASectionOrAKey) {
  EXPECT_EQ(
      help("mesh"),
      "mesh                      how the ranks are laid out\n"
      "  dp                      integer, at least 0, default 0\n"
      "                          data-parallel ranks: each takes its share of a batch; 0 = all "
      "ranks\n");
  EXPECT_EQ(help("model.dropout"),
            "  dropout                 number, in [0, 1), default 0\n"
            "                          probability that an activation is dropped while training\n");
  EXPECT_THAT(help("train.precision"),
              StartsWith("  precision               f32 | bf16 | f64, default f32\n"));
  EXPECT_THAT(help("model.width"),
              StartsWith("  width                   integer, at least 1, required\n"));
  EXPECT_THAT(help("data.path"), StartsWith("  path                    text, required\n"));
}

TEST(RecipeHelp, ShowsEverything) {
  const std::string all = help("");
  for (const std::string section : {"task", "run", "model", "tokenizer", "data", "batch",
                                    "optimizer", "train", "mesh", "sample"}) {
    EXPECT_THAT(all, HasSubstr(help(section)));
  }
}

TEST(RecipeHelp, ErrorsAreExact) {
  const std::string start = "error: --help-recipe: the name of a section or key is expected; got ";
  EXPECT_EQ(help("modle"), start + "'modle'; did you mean 'model'?");
  EXPECT_EQ(help("steps"), start + "'steps'; did you mean 'train.steps'?");
  EXPECT_EQ(help("model.widht"), start + "'model.widht'; did you mean 'model.width'?");
  EXPECT_EQ(help("qqqqqq"), start + "'qqqqqq'");
}

}  // namespace
}  // namespace obelisk
