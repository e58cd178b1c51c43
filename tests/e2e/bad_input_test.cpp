// Recipes, data and machines that cannot work: what is printed, the exit code, and that no run
// folder is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/e2e/trainer.h"

namespace obelisk::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(BadRecipe, AllErrorsAtOnceWithTheirPlaces) {
  const TempFolder temp;
  const std::string recipe = temp.write("bad.yaml",
                                        "task: pretrain\n"
                                        "model:\n"
                                        "  use: configs/model/gpt_tiny.yaml\n"
                                        "  widht: 64\n"
                                        "tokenizer: {kind: chars}\n"
                                        "data: {path: tests/data/genesis.txt}\n"
                                        "batch: {sequences: 8, sequence_length: 64}\n"
                                        "optimizer: {peak_lr: -1}\n"
                                        "train:\n"
                                        "  steps: 010\n"
                                        "  warmup_steps: 5\n");
  const Outcome outcome = trainer({"--config", recipe, "--set", "run.folder=" + temp.file("run")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  const std::vector<std::string> lines = lines_of(outcome.err);
  ASSERT_THAT(lines, SizeIs(5)) << outcome.err;
  EXPECT_THAT(lines[0], StartsWith(recipe + ":4:3: unknown key 'widht' in 'model'"));
  EXPECT_THAT(lines[1], StartsWith(recipe + ":5:19: "));
  EXPECT_THAT(lines[2], StartsWith(recipe + ":8:22: "));
  EXPECT_THAT(lines[3], StartsWith(recipe + ":10:10: "));
  EXPECT_THAT(lines[4], StartsWith(recipe + ":11:3: "));
  EXPECT_THAT(lines[4], HasSubstr("'warmup_steps' belongs in 'optimizer'"));
  EXPECT_FALSE(std::filesystem::exists(temp.file("run")));
}

TEST(BadRecipe, RulesOverSeveralKeys) {
  struct Case {
    std::string override;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {"model.width=65", "'model.width' must be a multiple of 'model.num_heads'"},
      {"batch.sequence_length=65", "'batch.sequence_length' must not exceed"},
      {"batch.micro_batch_size=3", "'batch.micro_batch_size' must divide the 8 sequences"},
      {"optimizer.min_lr=1", "'optimizer.min_lr' must not exceed 'optimizer.peak_lr'"},
      {"mesh.dp=2", "mesh dp 2 is 2 ranks, 1 was started; set dp: 1 or use -n 2"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.override);
    const TempFolder temp;
    const Outcome outcome = trainer(tiny_run(temp.file("run"), {c.override}));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(lines_of(outcome.err), SizeIs(1)) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("--set " + c.override + ": "));
    EXPECT_THAT(outcome.err, HasSubstr(c.sentence));
    EXPECT_FALSE(std::filesystem::exists(temp.file("run")));
  }
}

// The trainer on this data: exit code 1 and one sentence that holds the words; also in a dry run.
void expect_data_error(const std::string& path, const std::string& words,
                       const ProcessOptions& options = trainer_options()) {
  SCOPED_TRACE(path);
  const TempFolder temp;
  Words arguments = tiny_run(temp.file("run"), {"data.path=" + path});
  for (const bool dry_run : {false, true}) {
    if (dry_run) arguments.push_back("--dry-run");
    const Outcome outcome = trainer(arguments, 0, options);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(lines_of(outcome.err), SizeIs(1)) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("trainer: "));
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_THAT(outcome.err, HasSubstr(path));
    EXPECT_FALSE(std::filesystem::exists(temp.file("run")));
  }
}

TEST(BadData, EachKindGetsItsSentence) {
  const TempFolder temp;
  expect_data_error(temp.file("gone.txt"), "data.path: the file must exist");
  expect_data_error(temp.path(), "data.path: must be a text file; got the folder");
  expect_data_error(temp.write("empty.txt", ""), "data.path: the file must hold text");
  expect_data_error(temp.write("binary", std::string("text\0text", 9)),
                    "with a zero byte at offset 4");
  expect_data_error(temp.write("short.txt", "In the beginning"),
                    "data.path: the training split must hold at least 65 tokens");
  expect_data_error(temp.write("short_validation.txt", std::string(200, 'a')),
                    "data.path: the validation split must hold at least 65 tokens");
}

TEST(BadData, Unreadable) {
  const TempFolder temp;
  const std::string path = temp.write("secret.txt", "In the beginning");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ProcessOptions options = trainer_options();
  options.obey_permissions = true;
  expect_data_error(path, "data.path: the file must be readable", options);
}

TEST(BadData, ReadFailsHalfWay) {
  // Opens, but its first page cannot be read.
  expect_data_error("/proc/self/mem", "Input/output error; check its permissions and disk");
}

TEST(BadData, NotUtf8) {
  const TempFolder temp;
  const std::string path = temp.write("latin1.txt", std::string(2000, 'a') + "\xe9");
  const Outcome outcome = trainer(tiny_run(temp.file("run"), {"data.path=" + path}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("got byte 0xe9 at line 1, column 2001"));
  EXPECT_THAT(outcome.err, HasSubstr("tokenizer.kind: byte"));
}

// What cannot work is refused before anything big is built, in a dry run too.
void expect_refused(const Words& overrides, const std::string& words, int ranks = 0) {
  SCOPED_TRACE(overrides.front());
  const TempFolder temp;
  Words arguments = tiny_run(temp.file("run"), overrides);
  for (const bool dry_run : {false, true}) {
    if (dry_run) arguments.push_back("--dry-run");
    const Outcome outcome = trainer(arguments, ranks);
    EXPECT_EQ(outcome.exit_code, 1);
    const size_t first = outcome.err.find(words);
    ASSERT_NE(first, std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find(words, first + 1), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(temp.file("run")));
  }
}

TEST(BadData, PromptWithUnknownCharacter) {
  expect_refused({"sample.prompt=2 + 2"}, "trainer: sample.prompt: ");
}

TEST(BadMachine, RunThatCannotFit) {
  expect_refused({"run.memory_limit_gib=0.001"},
                 "trainer: memory: a rank needs at least 3.43 MiB (1.65 MiB for weights, gradients "
                 "and moments, 1.64 MiB for activations, ");
  expect_refused({"run.memory_limit_gib=0.001"}, "rank 0: memory: a rank needs at least ", 2);
  expect_refused({"model.num_layers=2000000000"}, "lower model.num_layers, model.width");
  expect_refused({"model.width=100000000"}, "lower model.num_layers, model.width");
  expect_refused({"batch.sequences=1000000000", "batch.micro_batch_size=0"},
                 "lower batch.micro_batch_size or batch.sequence_length");
  expect_refused({"run.memory_limit_gib=0.0001"},
                 "data.path: the text and its tokens must fit memory; got ");
}

TEST(BadMachine, RunFolderCannotBeMade) {
  const TempFolder temp;
  const std::string file = temp.write("file", "in the way");
  const Outcome in_the_way = trainer(tiny_run(file + "/run"));
  EXPECT_EQ(in_the_way.exit_code, 1);
  EXPECT_THAT(lines_of(in_the_way.err), SizeIs(1)) << in_the_way.err;
  EXPECT_THAT(in_the_way.err, HasSubstr("got a file of that name"));

  ASSERT_EQ(chmod(temp.path().c_str(), 0555), 0);
  ProcessOptions options = trainer_options();
  options.obey_permissions = true;
  const Outcome read_only = trainer(tiny_run(temp.file("run")), 0, options);
  ASSERT_EQ(chmod(temp.path().c_str(), 0755), 0);
  EXPECT_EQ(read_only.exit_code, 1);
  EXPECT_THAT(lines_of(read_only.err), SizeIs(1)) << read_only.err;
  EXPECT_THAT(read_only.err, HasSubstr("Permission denied"));
}

// The other ranks wait for rank 0's folder: its failure must end them, not leave them waiting.
TEST(BadMachine, RankZerosFailureEndsTheJob) {
  const TempFolder temp;
  const std::string file = temp.write("file", "in the way");
  ProcessOptions options = trainer_options();
  options.seconds = 60;
  const Outcome outcome = trainer(tiny_run(file + "/run"), 2, options);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("trainer: rank 0: run folder: "));
}

}  // namespace
}  // namespace obelisk::e2e
