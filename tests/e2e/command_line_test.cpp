// What the trainer answers to command lines: help, and one sentence with exit code 2 for bad ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/trainer.h"

namespace obelisk::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(CommandLine, BadOnesGetOneSentenceAndExitCode2) {
  struct Case {
    Words arguments;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {{}, "trainer: --config is required; name a recipe"},
      {{"--config"}, "trainer: --config: 1 required FILE missing; see trainer --help"},
      {{"--frobnicate"},
       "trainer: The following argument was not expected: --frobnicate; see trainer --help"},
      {{"--config", kTinyRecipe, "stray"},
       "trainer: The following argument was not expected: stray; see trainer --help"},
      {{"--config", "recipes/smoke/gone.yaml"},
       "recipes/smoke/gone.yaml: cannot read the file: No such file or directory"},
      {{"--config", "recipes/smoke"}, "recipes/smoke: cannot read the file: it is a folder"},
      {{"--config", kTinyRecipe, "--set", "optimizer.peak_lr"},
       "--set optimizer.peak_lr: an override is section.key=value"},
      {{"--config", kTinyRecipe, "--set", "optimizer.peek_lr=1"},
       "--set optimizer.peek_lr=1: unknown key 'peek_lr' in 'optimizer'; did you mean 'peak_lr'?"},
      {{"--help-recipe", "optimiser"},
       "--help-recipe: the name of a section or key is expected; got 'optimiser'; did you mean "
       "'optimizer'?"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.sentence);
    const Outcome outcome = trainer(c.arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(lines_of(outcome.err), SizeIs(1)) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith(c.sentence));
  }
}

TEST(CommandLine, TwoRanksTellItOnce) {
  const Outcome outcome = trainer({"--config", kTinyRecipe, "--set", "model.widht=1"}, 2);
  EXPECT_EQ(outcome.exit_code, 2);
  const std::string sentence = "unknown key 'widht'";
  const size_t first = outcome.err.find(sentence);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(sentence, first + 1), std::string::npos) << outcome.err;
}

TEST(CommandLine, HelpNamesFewOptions) {
  const Outcome outcome = trainer({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  int options = 0;
  for (const std::string& line : lines_of(outcome.out)) options += line.starts_with("  -");
  // What a run does is the recipe's affair: a knob more here needs a reason.
  EXPECT_EQ(options, 6) << outcome.out;
  for (const char* name :
       {"--help", "--config", "--set", "--dry-run", "--help-recipe", "--version"})
    EXPECT_THAT(outcome.out, HasSubstr(name));
}

TEST(CommandLine, HelpRecipeListsKeys) {
  const Outcome all = trainer({"--help-recipe"});
  EXPECT_EQ(all.exit_code, 0);
  for (const char* key : {"\nseed ", "\n  width ", "\n  peak_lr ", "\n  steps "})
    EXPECT_THAT(all.out, HasSubstr(key));
  const Outcome section = trainer({"--help-recipe", "mesh"});
  EXPECT_EQ(section.exit_code, 0);
  EXPECT_THAT(section.out, HasSubstr("\n  dp "));
  EXPECT_THAT(section.out, ::testing::Not(HasSubstr("optimizer")));
}

TEST(CommandLine, VersionIsOneLine) {
  const Outcome outcome = trainer({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(lines_of(outcome.out), SizeIs(1));
}

}  // namespace
}  // namespace obelisk::e2e
