// report.html: one file that shows a run and needs nothing else: no network, no fonts, no scripts
// from elsewhere. Key figures, loss, learning rate, gradient norm, throughput, where time and
// memory went, a traced step, the sample, the recipe, machine and build. Light or dark as the
// reader's system is.
//
// Rank 0 feeds it every step and rewrites the file at each validation, so that a run which dies
// leaves the report of its last validation. Memory is bounded and taken at the start: step and
// validation never allocate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "framework/base/trace.h"
#include "framework/train/events.h"
#include "framework/train/report_series.h"

namespace obelisk {

class RunReport {
 public:
  explicit RunReport(RunFacts facts);

  void step(const StepRecord& record);
  void validation(const ValidationRecord& record);
  // The spans of a traced step, shown as a time line.
  void timeline(std::span<const TraceRecord> spans);
  void finish(RunResult result);  // until then the report says "running"

  std::string html() const;

  // Replaces the file at `path` as a whole. Throws IoError.
  void write(const std::string& path) const;

 private:
  std::string head() const;
  std::string tiles() const;
  std::string charts() const;
  std::string phase_bar() const;
  std::string memory_bar() const;
  std::string texts() const;
  std::string facts_table() const;

  RunFacts facts_;
  std::optional<RunResult> result_;
  StepRecord last_;
  ValidationRecord last_validation_;
  Series loss_, validation_loss_, learning_rate_, gradient_norm_, throughput_;
  PhaseSeconds phases_;
  double step_seconds_ = 0, step_tokens_ = 0, validation_seconds_ = 0;
  int64_t peak_memory_ = 0;
  std::string timeline_;
};

}  // namespace obelisk
