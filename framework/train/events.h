// What a run has to tell, and the event log: JSON lines, one file a rank, one object a line.
//
// Every line has "event" and "time", seconds since the log was opened (steady clock):
//
//     run_start    first line: recipe, run folder, model, ranks, build, machine, library versions
//     step         a logged step: the fields of StepRecord
//     validation   the fields of ValidationRecord
//     span         something that took time besides steps: name, step, seconds
//     message      a warning or an error
//     run_end      last line, unless the process was killed
//
// Numbers are printed so that reading gives the same double back. NaN and Inf, which JSON lacks,
// become null and a second field: "loss":null,"loss_text":"nan". A line is written by one write(),
// so a crash loses no line that was told. step, validation and span allocate nothing once the line
// buffer has grown to its size.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/build_info.h"
#include "framework/base/log.h"
#include "framework/base/machine.h"
#include "framework/base/output_file.h"

namespace obelisk {

// What training keeps from step to step.
struct StateBytes {
  double weights = 0, gradients = 0, moments = 0;
};

// Known when a run starts.
struct RunFacts {
  std::string recipe;           // path of the recipe
  std::string resolved_recipe;  // its text with every value
  std::string folder;           // path of the numbered run folder
  std::string model;            // "gpt2, 6 layers, width 192"
  int64_t parameters = 0;
  int ranks = 1;
  int threads_per_rank = 1;
  int64_t tokens_per_step = 0;
  int64_t steps = 0;              // 0: only time ends the run
  double time_limit_seconds = 0;  // 0: only steps end it
  MachineInfo machine;
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
  double flops_per_token = 0;                                  // of a training step
  double peak_flops = 0;  // f32 multiply-adds of all ranks a second, measured; 0: not
  StateBytes state;       // of a rank
};

// Seconds of one step, by what they went into.
struct PhaseSeconds {
  double data = 0, forward = 0, backward = 0, reduce = 0, optimizer = 0;
};

constexpr std::array<std::pair<const char*, double PhaseSeconds::*>, 5> kPhases = {{
    {"data", &PhaseSeconds::data},
    {"forward", &PhaseSeconds::forward},
    {"backward", &PhaseSeconds::backward},
    {"reduce", &PhaseSeconds::reduce},
    {"optimizer", &PhaseSeconds::optimizer},
}};

// Also stands for a loss that is not a number.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct StepRecord {
  int64_t step = 0;  // steps done, this one included: the first is 1
  double loss = 0;   // nats a token
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  double seconds = 0;        // this step
  double tokens = 0;         // this step, all ranks
  int64_t memory_bytes = 0;  // peak of tensor memory in use, this rank
  int64_t tokens_seen = 0;   // since the run began, all ranks
  PhaseSeconds phases;
};

struct ValidationRecord {
  int64_t step = 0;
  double loss = 0;  // nats a token
  int64_t tokens = 0;
  double seconds = 0;
};

enum class Ending { Finished, TimeLimit, Stopped, Failed };

// "finished", "time limit", "stopped", "failed".
std::string_view ending_name(Ending ending);

// Known when a run ends.
struct RunResult {
  Ending ending = Ending::Finished;
  std::string error;  // why, when it failed
  int64_t steps = 0;
  int64_t tokens = 0;
  double seconds = 0;
  double loss = kUnknown;             // of the last step
  double validation_loss = kUnknown;  // the last one
  std::string sample;                 // text the model wrote, prompt included; empty: none
  std::string report;                 // path of report.html; empty: none
};

class EventLog {
 public:
  // Appends to `path`, which is made when missing. Throws IoError.
  explicit EventLog(const std::string& path);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // "<folder>/events.rank<k>.jsonl"
  static std::string path_in(const std::string& folder, int rank);

  // Each throws IoError when the line cannot be written whole. Threads may call at once.
  void run_start(const RunFacts& facts, int rank);
  void step(const StepRecord& record);
  void validation(const ValidationRecord& record);
  void span(std::string_view name, int64_t step, double seconds);
  void message(log::Level level, std::string_view text);
  void run_end(const RunResult& result);

 private:
  void begin(std::string_view event);
  void field(std::string_view key, double value);
  void field(std::string_view key, int64_t value);
  void field(std::string_view key, std::string_view value);
  void end();

  OutputFile file_;
  std::chrono::steady_clock::time_point opened_;
  std::mutex mutex_;  // a warning may come from another thread than the steps
  std::string line_;
};

}  // namespace obelisk
