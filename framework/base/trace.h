// What a rank does and when, as Chrome trace events: open the file in https://ui.perfetto.dev or
// chrome://tracing.
//
// A TraceFile chooses steps; while one of them runs, every TraceSpan of this thread (steps, phases,
// ops with their module path) is kept and written at the step's end. Outside of them a span costs
// one test of a thread-local pointer.
//
//     trace.rank0.json: [{"name":"process_name","ph":"M",...},
//       {"name":"matmul","cat":"op","ph":"X","pid":0,"tid":0,"ts":12.5,"dur":3.1,
//        "args":{"step":3,"path":"layers.0.attn.qkv"}}, ...]
//
// ts and dur are microseconds; ts counts from midnight UTC before the file was opened, so that the
// files of a node's ranks, opened together, line up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/output_file.h"

namespace obelisk {

// A span as it was written, for whoever shows it.
struct TraceRecord {
  std::string name, category, path;
  int64_t step = 0;
  double begin = 0, duration = 0;  // microseconds; begin counts as ts does
};

class TraceFile {
 public:
  // Records steps [first_step, first_step + num_steps) of this thread; steps count from 1. The file
  // is made at the first of them. One TraceFile a thread at a time.
  TraceFile(std::string path, int rank, int64_t first_step, int64_t num_steps);
  // Completes the file's JSON.
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // "<folder>/trace.rank<k>.json"
  static std::string path_in(const std::string& folder, int rank);

  // The spans of the first chosen step, inner ones before outer ones; none before its end.
  const std::vector<TraceRecord>& first_step() const { return first_records_; }

 private:
  friend class TraceSpan;
  friend class TraceStep;
  using Clock = std::chrono::steady_clock;

  struct Event {
    const char* name;         // a literal
    const char* category;     // a literal
    const std::string* path;  // of the module; null: none
    Clock::time_point begin, end;
  };

  void add(const char* name, const char* category, const std::string* path, Clock::time_point begin,
           Clock::time_point end) {
    events_.push_back({name, category, path, begin, end});
  }
  bool wants(int64_t step) const { return step >= first_step_ && step < end_step_; }
  void write_step(int64_t step);
  void keep_first_step();

  const std::string path_;
  const int rank_;
  const int64_t first_step_, end_step_;
  const Clock::time_point midnight_;
  std::optional<OutputFile> file_;
  std::vector<Event> events_;
  std::vector<TraceRecord> first_records_;
  std::string text_;

  static thread_local constinit TraceFile* installed_;
  static thread_local constinit TraceFile* active_;  // while a chosen step runs
};

// From its construction to its end, if a chosen step runs. The texts must outlive the step.
class TraceSpan {
 public:
  explicit TraceSpan(const char* name, const char* category = "phase",
                     const std::string* path = nullptr)
      : file_(TraceFile::active_) {
    if (file_ != nullptr) [[unlikely]]
      open(name, category, path);
  }
  ~TraceSpan() {
    if (file_ != nullptr) [[unlikely]]
      close();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void open(const char* name, const char* category, const std::string* path);
  void close();

  TraceFile* const file_;
  const char* name_;
  const char* category_;
  const std::string* path_;
  TraceFile::Clock::time_point begin_;
};

// A training step; opened by the loop. At its end the spans of a chosen step are written. Throws
// IoError there when they cannot be.
class TraceStep {
 public:
  explicit TraceStep(int64_t step);
  ~TraceStep() noexcept(false);
  TraceStep(const TraceStep&) = delete;
  TraceStep& operator=(const TraceStep&) = delete;

 private:
  const int64_t step_;
  TraceFile::Clock::time_point begin_;
};

}  // namespace obelisk
