// Whole runs: every smoke recipe, ranks and threads that must not change the losses, what a run
// leaves in its folder, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>

#include "tests/e2e/trainer.h"

namespace obelisk::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Long enough to be interrupted.
const Words kEndless = {"train.steps=1000000", "train.log_every=1"};

struct RunCurve {
  fs::path folder;  // the numbered one
  std::vector<double> losses, norms, validations;
};

// A successful run of gpt_tiny with every step logged.
RunCurve run_tiny(const TempFolder& temp, const std::string& name, Words overrides, int ranks) {
  overrides.push_back("train.log_every=1");
  const Outcome outcome = trainer(tiny_run(temp.file(name), overrides), ranks);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  RunCurve run{temp.path() / name / "001", {}, {}, {}};
  const fs::path events = run.folder / "events.rank0.jsonl";
  run.losses = series(events, "step", "loss");
  run.norms = series(events, "step", "gradient_norm");
  run.validations = series(events, "validation", "loss");
  return run;
}

void expect_bitwise(const RunCurve& a, const RunCurve& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  EXPECT_EQ(a.validations, b.validations);
}

TEST(Smoke, EveryRecipeRunsOnOneAndTwoRanks) {
  int recipes = 0;
  for (const auto& entry : fs::directory_iterator("recipes/smoke")) {
    if (entry.path().extension() != ".yaml") continue;
    ++recipes;
    for (const int ranks : {0, 1, 2}) {
      SCOPED_TRACE(entry.path().string() + ", ranks " + std::to_string(ranks));
      const TempFolder temp;
      const Outcome outcome =
          trainer({"--config", entry.path(), "--set", "run.folder=" + temp.file("run")}, ranks);
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      EXPECT_EQ(outcome.err, "");
      EXPECT_THAT(outcome.out, HasSubstr("report.html"));
      // Nothing for a terminal in a pipe.
      EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
      EXPECT_THAT(outcome.out, Not(HasSubstr("\r\x1b")));
      for (const char* file : {"report.html", "recipe.yaml", "events.rank0.jsonl"})
        EXPECT_GT(fs::file_size(temp.path() / "run" / "latest" / file), 0u) << file;
      for (int rank = 0; rank < std::max(ranks, 1); ++rank) {
        const fs::path events =
            temp.path() / "run" / "001" / ("events.rank" + std::to_string(rank) + ".jsonl");
        EXPECT_THAT(read_events(events, "run_start"), SizeIs(1));
        const auto end = read_events(events, "run_end");
        ASSERT_THAT(end, SizeIs(1));
        EXPECT_EQ(end[0].texts.at("outcome"), "finished");
      }
    }
  }
  EXPECT_GT(recipes, 0);
}

TEST(Smoke, LearnsGenesis) {
  const TempFolder temp;
  const RunCurve run = run_tiny(temp, "run", {}, 0);
  ASSERT_THAT(run.losses, SizeIs(50));
  EXPECT_NEAR(run.losses.front(), std::log(59.0), 0.15);
  EXPECT_LT(run.losses.back(), 3.0);
  ASSERT_THAT(run.validations, SizeIs(2));
  EXPECT_LT(run.validations.back(), run.validations.front());
}

TEST(SameLosses, OnOneAndTwoRanks) {
  const TempFolder temp;
  const Words f64 = {"train.precision=f64", "train.steps=20"};
  const RunCurve one = run_tiny(temp, "one", f64, 1);
  const RunCurve two = run_tiny(temp, "two", f64, 2);
  ASSERT_EQ(one.losses.size(), 20u);
  ASSERT_EQ(two.losses.size(), 20u);
  for (size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(one.losses[i], two.losses[i], 1e-10) << "step " << i + 1;
    EXPECT_NEAR(one.norms[i], two.norms[i], 1e-9) << "step " << i + 1;
  }
  ASSERT_EQ(one.validations.size(), two.validations.size());
  for (size_t i = 0; i < one.validations.size(); ++i)
    EXPECT_NEAR(one.validations[i], two.validations[i], 1e-10);
}

TEST(SameLosses, BitForBitInARepeat) {
  for (const int ranks : {0, 2}) {
    SCOPED_TRACE(ranks);
    const TempFolder temp;
    const Words dropout = {"model.dropout=0.1"};
    expect_bitwise(run_tiny(temp, "first", dropout, ranks),
                   run_tiny(temp, "second", dropout, ranks));
  }
}

TEST(SameLosses, BitForBitOnOneAndTwoThreads) {
  for (const char* precision : {"train.precision=f32", "train.precision=f64"}) {
    SCOPED_TRACE(precision);
    const TempFolder temp;
    expect_bitwise(run_tiny(temp, "one", {precision, "threads=1"}, 0),
                   run_tiny(temp, "two", {precision, "threads=2"}, 0));
  }
}

TEST(SameLosses, BitForBitWithRecompute) {
  const TempFolder temp;
  const RunCurve none = run_tiny(temp, "none", {"model.dropout=0.1", "train.steps=20"}, 0);
  for (const char* recompute : {"none", "full"}) {
    SCOPED_TRACE(recompute);
    const std::string key = "train.recompute=" + std::string(recompute);
    expect_bitwise(none,
                   run_tiny(temp, recompute, {"model.dropout=0.1", "train.steps=20", key}, 0));
  }
}

TEST(SameLosses, FromTheResolvedRecipe) {
  const TempFolder temp;
  const RunCurve first =
      run_tiny(temp, "run", {"train.steps=5", "optimizer.warmup_steps=0", "seed=7"}, 0);
  const Outcome outcome = trainer({"--config", (first.folder / "recipe.yaml").string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // The resolved recipe names the same run.folder, so the repeat is its second run.
  EXPECT_EQ(series(temp.path() / "run" / "002" / "events.rank0.jsonl", "step", "loss"),
            first.losses);
}

TEST(DryRun, PrintsThePlanAndWritesNothing) {
  const TempFolder temp;
  Words arguments = tiny_run(temp.file("run"));
  arguments.push_back("--dry-run");
  const Outcome outcome = trainer(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // Embeddings 59 x 64 and 64 x 64; a layer 12 x 64 x 64 + 13 x 64; the last norm 2 x 64.
  EXPECT_THAT(outcome.out, HasSubstr("107968"));
  EXPECT_THAT(outcome.out, HasSubstr("512 tokens"));
  EXPECT_FALSE(fs::exists(temp.file("run")));
}

TEST(RunFolder, SecondRunIsRefusedWhileTheFirstGoesOn) {
  const TempFolder temp;
  const std::string folder = temp.file("run");
  Process first(trainer_command(tiny_run(folder, kEndless)), trainer_options());
  ASSERT_TRUE(first.wait_for("step"));
  const Outcome second = trainer(tiny_run(folder));
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(lines_of(second.err), SizeIs(1)) << second.err;
  EXPECT_THAT(second.err, HasSubstr("can serve one run at a time; got a lock held by pid " +
                                    std::to_string(first.pid()) + " on host "));
  kill(first.pid(), SIGKILL);
  EXPECT_EQ(first.finish().exit_code, 128 + SIGKILL);

  // The lock went with its holder, and what that one wrote stays.
  const Outcome third = trainer(tiny_run(folder, {"train.steps=2", "optimizer.warmup_steps=0"}));
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_GT(fs::file_size(temp.path() / "run/001/events.rank0.jsonl"), 0u);
  EXPECT_GT(fs::file_size(temp.path() / "run/002/report.html"), 0u);
  EXPECT_EQ(fs::read_symlink(temp.path() / "run/latest"), "002");
}

TEST(Ending, TimeLimitValidatesAndSamples) {
  const TempFolder temp;
  Words overrides = kEndless;
  overrides.push_back("train.time_limit_seconds=1");
  overrides.push_back("train.validate_every=0");
  const Outcome outcome = trainer(tiny_run(temp.file("run"), overrides));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const fs::path events = temp.path() / "run/001/events.rank0.jsonl";
  const auto end = read_events(events, "run_end");
  ASSERT_THAT(end, SizeIs(1));
  EXPECT_EQ(end[0].texts.at("outcome"), "time limit");
  EXPECT_THAT(end[0].texts.at("sample"), HasSubstr("And the "));
  EXPECT_THAT(read_events(events, "validation"), SizeIs(1));
}

TEST(Ending, InterruptFinishesTheStepAndEndsAsUsual) {
  for (const int signal : {SIGINT, SIGUSR1}) {
    SCOPED_TRACE(signal);
    const TempFolder temp;
    Process process(trainer_command(tiny_run(temp.file("run"), kEndless)), trainer_options());
    ASSERT_TRUE(process.wait_for("step"));
    kill(process.pid(), signal);
    const Outcome outcome = process.finish();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto end = read_events(temp.path() / "run/001/events.rank0.jsonl", "run_end");
    ASSERT_THAT(end, SizeIs(1));
    EXPECT_EQ(end[0].texts.at("outcome"), "stopped");
    EXPECT_TRUE(fs::exists(temp.path() / "run/001/report.html"));
  }
}

TEST(Ending, TerminationExitsWith143) {
  const TempFolder temp;
  Process process(trainer_command(tiny_run(temp.file("run"), kEndless)), trainer_options());
  ASSERT_TRUE(process.wait_for("step"));
  kill(process.pid(), SIGTERM);
  EXPECT_EQ(process.finish().exit_code, 143);
  EXPECT_THAT(read_events(temp.path() / "run/001/events.rank0.jsonl", "run_end"), SizeIs(1));
}

TEST(Output, OneGreppableLineALoggedStep) {
  const TempFolder temp;
  const Outcome outcome = trainer(tiny_run(temp.file("run")));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  int steps = 0, validations = 0;
  for (const std::string& line : lines_of(outcome.out)) {
    steps += line.starts_with("step ");
    validations += line.starts_with("valid ");
  }
  EXPECT_EQ(steps, 6) << outcome.out;  // 1, 10, 20, 30, 40, 50
  EXPECT_EQ(validations, 2) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("And the "));
}

TEST(Output, TraceOfTheChosenSteps) {
  const TempFolder temp;
  ASSERT_EQ(trainer(tiny_run(temp.file("run"), {"run.trace_steps=2"}), 2).exit_code, 0);
  for (const char* file : {"trace.rank0.json", "trace.rank1.json"}) {
    SCOPED_TRACE(file);
    const std::string trace = read_file(temp.path() / "run/latest" / file);
    for (const char* name : {"data", "forward", "backward", "reduce", "optimizer", "attention"})
      EXPECT_THAT(trace, HasSubstr("{\"name\":\"" + std::string(name) + "\","));
    for (const char* step : {"\"step\":3", "\"step\":4"}) EXPECT_THAT(trace, HasSubstr(step));
    for (const char* step : {"\"step\":2", "\"step\":5"}) EXPECT_THAT(trace, Not(HasSubstr(step)));
  }
}

TEST(Output, ReportNeedsNoNetwork) {
  const TempFolder temp;
  ASSERT_EQ(trainer(tiny_run(temp.file("run"))).exit_code, 0);
  const std::string report = read_file(temp.path() / "run/latest/report.html");
  EXPECT_THAT(report, HasSubstr("<svg"));
  EXPECT_THAT(report, HasSubstr("And the "));
  EXPECT_THAT(report, HasSubstr("gpt_tiny"));
  for (const char* fetches : {" src=", "<link", "@import", "url("})
    EXPECT_THAT(report, Not(HasSubstr(fetches)));
}

}  // namespace
}  // namespace obelisk::e2e
