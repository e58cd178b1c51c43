#include "framework/train/loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <functional>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

// Counts what the loop asks for.
class CountingTask : public Task {
 public:
  StepResult step(int64_t index) override {
    indices.push_back(index);
    if (on_step) on_step(index);
    StepResult result;
    result.loss = 1.0 / static_cast<double>(index + 1);
    result.tokens = 10;
    if (bad_from >= 0 && index >= bad_from) {
      result.loss = std::nan("");
      result.skipped = true;
    }
    return result;
  }
  ValidationRecord validate() override {
    validated_after.push_back(static_cast<int64_t>(indices.size()));
    return {.loss = 0.5, .tokens = 7};
  }
  std::string sample() override { return ""; }
  int64_t memory_bytes() const override { return 123; }
  uint32_t agree(uint32_t flags) override { return flags | others; }

  std::vector<int64_t> indices, validated_after;
  std::function<void(int64_t)> on_step;
  int64_t bad_from = -1;
  uint32_t others = 0;  // what another rank wants
};

struct Recorder : LoopObserver {
  void on_step(const StepRecord& record, bool logged) override {
    if (logged) logged_steps.push_back(record.step);
    last = record;
  }
  void on_validation(const ValidationRecord& record) override {
    validations.push_back(record.step);
  }
  std::vector<int64_t> logged_steps, validations;
  StepRecord last;
};

RunResult run(Task& task, const LoopOptions& options,
              const std::vector<LoopObserver*>& observers = {}) {
  RunResult result;
  run_training(task, options, observers, result);
  return result;
}

TEST(Loop, RunsStepsAndValidates) {
  CountingTask task;
  Recorder recorder;
  const RunResult result =
      run(task, {.steps = 10, .log_every = 4, .validate_every = 5}, {&recorder});
  EXPECT_EQ(result.steps, 10);
  EXPECT_EQ(result.tokens, 100);
  EXPECT_EQ(result.ending, Ending::Finished);
  EXPECT_EQ(result.validation_loss, 0.5);
  EXPECT_DOUBLE_EQ(result.loss, 0.1);
  EXPECT_EQ(task.indices.front(), 0);
  EXPECT_EQ(task.indices.back(), 9);
  EXPECT_EQ(recorder.logged_steps, (std::vector<int64_t>{1, 4, 8, 10}));
  EXPECT_EQ(recorder.validations, (std::vector<int64_t>{5, 10}));  // the end is validated once
  EXPECT_EQ(recorder.last.tokens_seen, 100);
  EXPECT_EQ(recorder.last.memory_bytes, 123);
}

TEST(Loop, EndsWhenTimeIsUp) {
  CountingTask task;
  const RunResult result = run(task, {.steps = 1000000000, .time_limit_seconds = 0.02});
  EXPECT_EQ(result.ending, Ending::TimeLimit);
  EXPECT_LT(result.steps, 1000000000);
  EXPECT_EQ(task.validated_after.size(), 1u);
}

TEST(Loop, FollowsTheFlagsOfOtherRanks) {
  CountingTask task;
  task.others = 1;
  EXPECT_EQ(run(task, {.steps = 5}).steps, 0);
}

TEST(Loop, StopsOnSignals) {
  for (int signal : {SIGINT, SIGUSR1, SIGTERM}) {
    StopSignals signals;
    CountingTask task;
    task.on_step = [&](int64_t index) {
      if (index == 2) std::raise(signal);
    };
    const RunResult result = run(task, {.steps = 10});
    EXPECT_EQ(result.steps, 3);
    EXPECT_EQ(result.ending, Ending::Stopped);
    // mpirun kills soon after SIGTERM: no time for a validation.
    EXPECT_EQ(task.validated_after.size(), signal == SIGTERM ? 0u : 1u);
    EXPECT_EQ(StopSignals::terminate_asked(), signal == SIGTERM);
  }
}

TEST(Loop, SkipsNonFiniteStepsAndGivesUpAtTheLimit) {
  std::vector<std::string> lines;
  log::Route route([&](log::Level, std::string_view text) { lines.emplace_back(text); });
  CountingTask task;
  task.bad_from = 3;
  RunResult result;
  EXPECT_ERROR(
      run_training(task, {.steps = 100, .max_skipped_steps = 4}, {}, result), ValueError,
      "training: loss and gradient norm must be finite; got 4 skipped steps in a row up to "
      "step 7; lower optimizer.peak_lr or raise optimizer.warmup_steps");
  // What was reached before it failed.
  EXPECT_EQ(result.steps, 7);
  EXPECT_EQ(result.tokens, 70);
  EXPECT_GT(result.seconds, 0);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0],
            "step 4: loss nan and gradient norm 0 must be finite; the update was skipped");
}

}  // namespace
}  // namespace obelisk
