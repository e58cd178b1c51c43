#include "framework/train/loop.h"

#include <chrono>
#include <cmath>
#include <csignal>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/trace.h"

namespace obelisk {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

enum Flag : uint32_t { kTimeIsUp = 1, kStop = 2, kTerminate = 4 };

// Written by signal handlers, hence lock-free and static.
volatile std::sig_atomic_t stop_flag = 0;
volatile std::sig_atomic_t terminate_flag = 0;

void on_stop(int) { stop_flag = 1; }
void on_terminate(int) {
  stop_flag = 1;
  terminate_flag = 1;
}

class Loop {
 public:
  Loop(Task& task, const LoopOptions& options, const std::vector<LoopObserver*>& observers,
       RunResult& result)
      : task_(task),
        options_(options),
        observers_(observers),
        start_(Clock::now()),
        result_(result) {}

  void run() {
    while (result_.steps < options_.steps && !stopping()) {
      one_step();
      const bool last = result_.steps == options_.steps;
      if (options_.validate_every > 0 && result_.steps % options_.validate_every == 0 && !last)
        validate();
    }
    if (!terminated_) validate();
  }

 private:
  // Every rank comes to the same answer.
  bool stopping() {
    uint32_t flags = 0;
    if (options_.time_limit_seconds > 0 && seconds_since(start_) >= options_.time_limit_seconds)
      flags |= kTimeIsUp;
    if (StopSignals::stop_asked()) flags |= kStop;
    if (StopSignals::terminate_asked()) flags |= kTerminate;
    flags = task_.agree(flags);
    if ((flags & kTimeIsUp) != 0) result_.ending = Ending::TimeLimit;
    if ((flags & kStop) != 0) result_.ending = Ending::Stopped;
    terminated_ = (flags & kTerminate) != 0;
    return flags != 0;
  }

  void one_step() {
    const auto begin = Clock::now();
    const TraceStep trace(result_.steps + 1);
    const StepResult step = task_.step(result_.steps);
    ++result_.steps;
    result_.tokens += step.tokens;
    result_.loss = std::isnan(step.loss) ? kUnknown : step.loss;  // NaN without its sign
    result_.seconds = seconds_since(start_);
    note_skipped(step);
    const StepRecord record{.step = result_.steps,
                            .loss = result_.loss,
                            .learning_rate = step.learning_rate,
                            .gradient_norm = step.gradient_norm,
                            .seconds = seconds_since(begin),
                            .tokens = static_cast<double>(step.tokens),
                            .memory_bytes = task_.memory_bytes(),
                            .tokens_seen = result_.tokens,
                            .phases = step.phases};
    const bool logged = result_.steps == 1 || result_.steps == options_.steps ||
                        result_.steps % options_.log_every == 0;
    for (LoopObserver* observer : observers_) observer->on_step(record, logged);
  }

  void note_skipped(const StepResult& step) {
    if (!step.skipped) {
      skipped_in_a_row_ = 0;
      return;
    }
    ++skipped_in_a_row_;
    log::warn("step {}: loss {} and gradient norm {} must be finite; the update was skipped",
              result_.steps, result_.loss, step.gradient_norm);
    OBELISK_CHECK(
        skipped_in_a_row_ < options_.max_skipped_steps, ValueError,
        "training: loss and gradient norm must be finite; got {} skipped steps in a row up "
        "to step {}; lower optimizer.peak_lr or raise optimizer.warmup_steps",
        skipped_in_a_row_, result_.steps);
  }

  void validate() {
    const auto begin = Clock::now();
    ValidationRecord record = task_.validate();
    record.step = result_.steps;
    record.seconds = seconds_since(begin);
    result_.validation_loss = record.loss;
    result_.seconds = seconds_since(start_);
    for (LoopObserver* observer : observers_) observer->on_validation(record);
  }

  Task& task_;
  const LoopOptions& options_;
  const std::vector<LoopObserver*>& observers_;
  Clock::time_point start_;
  RunResult& result_;
  int64_t skipped_in_a_row_ = 0;
  bool terminated_ = false;
};

}  // namespace

void run_training(Task& task, const LoopOptions& options,
                  const std::vector<LoopObserver*>& observers, RunResult& result) {
  result = RunResult();
  Loop(task, options, observers, result).run();
}

StopSignals::StopSignals() {
  stop_flag = 0;
  terminate_flag = 0;
  std::signal(SIGINT, on_stop);
  std::signal(SIGUSR1, on_stop);
  std::signal(SIGTERM, on_terminate);
}
StopSignals::~StopSignals() {
  stop_flag = 0;
  terminate_flag = 0;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGUSR1, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}
bool StopSignals::stop_asked() { return stop_flag != 0; }
bool StopSignals::terminate_asked() { return terminate_flag != 0; }

}  // namespace obelisk
