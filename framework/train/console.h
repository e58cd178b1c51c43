// What rank 0 shows to the person who started the run.
//
// On a terminal: a head block, one live line redrawn in place (progress bar, loss, speed, time
// left), validations and messages as lines above it, and a final block. Elsewhere, in a pipe or a
// file: the same without control codes, and one line with fixed columns for every logged step.
//
//     step     120/2000  loss   2.4310  lr 9.98e-04  grad   0.912  tok/s  12.3k  mem  312 MiB  eta
//     1:23 valid    250/2000  loss   2.1021  tokens 111540  in 0:03
//
// The live line fits the width of the terminal, asked for at every redraw; fields of less weight
// go first. It is drawn at most ten times a second. No colour where there is no terminal and where
// the environment holds NO_COLOR; no live line where TERM is dumb.
//
// mpirun gives a rank a pseudo-terminal of no size even when its own output goes to a file. Below
// such a launcher it is the launcher's standard output that decides, and that gives the width.
//
// Failing writes are ignored: a closed window must not end a training run. step allocates nothing
// once the line buffer has its size.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "framework/base/log.h"
#include "framework/train/events.h"

namespace obelisk {

// Where a file descriptor leads.
struct Terminal {
  bool live = false;  // a terminal that understands control codes
  int columns = 80;
};

// `launcher` is the path of the launcher's standard output; empty without one.
Terminal look_at_terminal(int fd, const std::string& launcher);

// "/proc/<pid>/fd/1" of the MPI launcher on this machine that started `pid`, directly or through a
// script; empty when there is none. 0 is this process.
std::string launcher_output(int pid = 0);

struct ConsoleOptions {
  int fd = 1;
  int64_t steps = 0;              // 0: only time ends the run
  double time_limit_seconds = 0;  // 0: only steps end it
  int64_t log_every = 1;          // without a terminal: the first step, these, and the last
  std::string launcher = launcher_output();  // see look_at_terminal
};

class Console {
 public:
  explicit Console(ConsoleOptions options);
  ~Console();  // leaves the live line as it stands, and the cursor visible
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void head(const RunFacts& facts);

  // The clock of the progress bar and the time limit starts with the first call of head or step.
  void step(const StepRecord& record);

  void validation(const ValidationRecord& record);

  // To be given to log::Route; threads may call at once.
  void message(log::Level level, std::string_view text);

  void finish(const RunResult& result);

 private:
  struct Field;

  void start_clock();
  double elapsed() const;
  double fraction() const;
  double seconds_left() const;
  void track(const StepRecord& record);

  void put_line();  // moves line_ out, above the live line
  void draw_live();
  void append_fields(int columns);
  void append_bar(int width);
  void append_step_line();
  void style(const char* code);
  void flush();

  ConsoleOptions options_;
  bool live_ = false;
  bool utf8_ = false;
  bool drawn_ = false;  // the live line is on the screen, the cursor hidden
  std::mutex mutex_;
  std::string buffer_;   // what the next flush writes
  std::string scratch_;  // field values of the live line

  bool started_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_draw_;
  StepRecord last_;
  double validation_loss_ = kUnknown;
  double best_validation_ = kUnknown;
  // Sums that fade with the time constant kRecent: speed and time left follow the last steps.
  double recent_seconds_ = 0;
  double recent_tokens_ = 0;
  double recent_steps_ = 0;
};

}  // namespace obelisk
