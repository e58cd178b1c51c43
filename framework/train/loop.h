// The training loop: steps until the recipe's end, its time limit or a signal; validations on the
// way; one at the end.
#pragma once

#include <vector>

#include "framework/train/events.h"
#include "framework/train/task.h"

namespace obelisk {

struct LoopOptions {
  int64_t steps = 0;
  double time_limit_seconds = 0;  // of training, validations on the way included; 0: none
  int64_t log_every = 1;
  int64_t validate_every = 0;      // 0: at the end only
  int64_t max_skipped_steps = 10;  // in a row
};

// Who wants to know. Called in order of the list; `logged` says whether the recipe's log_every asks
// for this step.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;
  virtual void on_step(const StepRecord& record, bool logged) = 0;
  virtual void on_validation(const ValidationRecord& record) = 0;
};

// `result` is kept true from step to step, so that what was reached is known also when this throws.
// Throws ValueError after max_skipped_steps steps in a row whose loss or gradient norm was not
// finite.
void run_training(Task& task, const LoopOptions& options,
                  const std::vector<LoopObserver*>& observers, RunResult& result);

// SIGINT and SIGUSR1 ask the loop to stop after the current step, to validate and to end as usual.
// SIGTERM asks it to stop without that, since mpirun kills a second later. Handlers are installed
// for the life of this object.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool stop_asked();       // any of them
  static bool terminate_asked();  // SIGTERM
};

}  // namespace obelisk
