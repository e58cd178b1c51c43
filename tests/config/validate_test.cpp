// Rules over several keys: every message, and what is just allowed.
#include <gtest/gtest.h>

#include "tests/config/support.h"

namespace obelisk {
namespace {

std::string model(const std::string& sizes) {
  return recipe_with("model: {kind: gpt2, num_layers: 1, context_length: 16, " + sizes + "}");
}

TEST(Validate, WidthIsAMultipleOfHeads) {
  EXPECT_EQ(load_errors(model("num_heads: 6, width: 192")), "");
  EXPECT_EQ(load_errors(model("num_heads: 6, width: 190")),
            "r.yaml:1:77: 'model.width' must be a multiple of 'model.num_heads'; got width 190, "
            "num_heads 6; set width: 186 or 192");
  EXPECT_EQ(load_errors(model("num_heads: 6, width: 5")),
            "r.yaml:1:77: 'model.width' must be a multiple of 'model.num_heads'; got width 5, "
            "num_heads 6; set width: 6");
}

TEST(Validate, SequencesFitTheContext) {
  EXPECT_EQ(load_errors(recipe_with("batch: {sequences: 1, sequence_length: 16}")), "");
  EXPECT_EQ(
      load_errors(recipe_with("batch: {sequences: 1, sequence_length: 17}")),
      "r.yaml:1:40: 'batch.sequence_length' must not exceed 'model.context_length'; got 17 and "
      "16; set sequence_length: 16 or context_length: 17");
}

TEST(Validate, LearningRatesAreOrdered) {
  EXPECT_EQ(load_errors(recipe_with("optimizer: {peak_lr: 0.1, min_lr: 0.1}")), "");
  EXPECT_EQ(load_errors(recipe_with("optimizer: {peak_lr: 0.1, min_lr: 1, schedule: constant}")),
            "");
  EXPECT_EQ(load_errors(recipe_with("optimizer: {peak_lr: 0.1, min_lr: 0.2}")),
            "r.yaml:1:35: 'optimizer.min_lr' must not exceed 'optimizer.peak_lr'; got 0.2 and 0.1");
}

TEST(Validate, WarmupEnds) {
  EXPECT_EQ(load_errors(recipe_with("optimizer: {peak_lr: 1, warmup_steps: 10}")), "");
  EXPECT_EQ(load_errors(recipe_with("optimizer: {peak_lr: 1, warmup_steps: 11}")),
            "r.yaml:1:39: 'optimizer.warmup_steps' must not exceed 'train.steps'; got 11 and 10");
  EXPECT_EQ(load_errors(recipe_with("optimizer: {peak_lr: 1, warmup_steps: 5, decay_steps: 5}")),
            "");
  EXPECT_EQ(load_errors(recipe_with("optimizer: {peak_lr: 1, warmup_steps: 5, decay_steps: 4}")),
            "r.yaml:1:55: 'optimizer.decay_steps' counts from the first step and must not be below "
            "'optimizer.warmup_steps'; got 4 and 5");
  EXPECT_EQ(load_errors(recipe_with(
                "optimizer: {peak_lr: 1, warmup_steps: 5, decay_steps: 4, schedule: constant}")),
            "");
}

TEST(Validate, SamplesContinueAPrompt) {
  EXPECT_EQ(load_errors(recipe_with("sample: {tokens: 5}")), "");
  EXPECT_EQ(load_errors(recipe_with("sample: {prompt: \"\"}")), "");
  EXPECT_EQ(
      load_errors(recipe_with("sample: {tokens: 5, prompt: \"\"}")),
      "r.yaml:1:29: 'sample.prompt' must not be empty when 'sample.tokens' is above 0: the sample "
      "continues it");
}

TEST(Validate, MeshIsTheRanksStarted) {
  const std::string two = recipe_with("mesh:\n  dp: 2");
  EXPECT_EQ(load_errors(two, {}, 2), "");
  EXPECT_EQ(load_errors(two, {}, 4),
            "r.yaml:2:7: mesh dp 2 is 2 ranks, 4 were started; set dp: 4 or use -n 2");
  EXPECT_EQ(load_errors(two, {}, 1),
            "r.yaml:2:7: mesh dp 2 is 2 ranks, 1 was started; set dp: 1 or use -n 2");
  EXPECT_EQ(load_errors(two, {"mesh.dp=1"}, 2),
            "--set mesh.dp=1: mesh dp 1 is 1 rank, 2 were started; set dp: 2 or use -n 1");
  EXPECT_EQ(load_errors(recipe_with(""), {}, 4), "");
}

TEST(Validate, BatchesDivideOverRanks) {
  const std::string thirty = recipe_with("batch:\n  sequences: 30\n  sequence_length: 16");
  EXPECT_EQ(load_errors(thirty, {}, 2), "");
  EXPECT_EQ(
      load_errors(thirty, {}, 4),
      "r.yaml:2:14: 'batch.sequences' must be a multiple of the 4 data-parallel ranks; got 30; set "
      "sequences: 28 or 32");
  EXPECT_EQ(load_errors(thirty, {}, 64),
            "r.yaml:2:14: 'batch.sequences' must be a multiple of the 64 data-parallel ranks; got "
            "30; set "
            "sequences: 64");
}

TEST(Validate, MicroBatchesDivideAShare) {
  const std::string thirty = recipe_with("batch: {sequences: 30, sequence_length: 16}");
  EXPECT_EQ(load_errors(thirty, {"batch.micro_batch_size=5"}, 2), "");
  EXPECT_EQ(
      load_errors(thirty, {"batch.micro_batch_size=4"}, 2),
      "--set batch.micro_batch_size=4: 'batch.micro_batch_size' must divide the 15 sequences of a "
      "rank (30 over dp 2); got 4; set 1, 3, 5 or 15, or 0 for all");
  EXPECT_EQ(
      load_errors(thirty, {"batch.micro_batch_size=60"}, 1),
      "--set batch.micro_batch_size=60: 'batch.micro_batch_size' must divide the 30 sequences of a "
      "rank (30 over dp 1); got 60; set 1, 2, 3, 5, 6, 10, 15 or 30, or 0 for all");
}

TEST(Validate, AllAtOnce) {
  EXPECT_EQ(
      load_errors(recipe_with("batch: {sequences: 1, sequence_length: 99}\n"
                              "train: {steps: 5}\n"
                              "optimizer: {peak_lr: 1, min_lr: 2, warmup_steps: 6}\n")),
      "r.yaml:1:40: 'batch.sequence_length' must not exceed 'model.context_length'; got 99 and "
      "16; set sequence_length: 16 or context_length: 99\n"
      "r.yaml:3:33: 'optimizer.min_lr' must not exceed 'optimizer.peak_lr'; got 2 and 1\n"
      "r.yaml:3:50: 'optimizer.warmup_steps' must not exceed 'train.steps'; got 6 and 5");
  EXPECT_EQ(
      load_errors(recipe_with("mesh: {dp: 3}\nbatch: {sequences: 4, sequence_length: 9}\n"), {}, 2),
      "r.yaml:1:12: mesh dp 3 is 3 ranks, 2 were started; set dp: 2 or use -n 3\n"
      "r.yaml:2:20: 'batch.sequences' must be a multiple of the 3 data-parallel ranks; got 4; set "
      "sequences: 3 or 6");
}

TEST(LoadRecipe, NamesTheRunFolder) {
  const TempFolder folder;
  const std::string file = folder.write("my.run.yaml", recipe_with(""));
  EXPECT_EQ(load_recipe(file, {}).recipe.run().folder(), "runs/my.run");
  const std::vector<std::string> overrides = {"run.folder=elsewhere"};
  EXPECT_EQ(load_recipe(file, overrides).recipe.run().folder(), "elsewhere");
}

}  // namespace
}  // namespace obelisk
