#include "framework/train/events.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <iterator>

#include "framework/train/report_text.h"

namespace obelisk {
namespace {

constexpr size_t kLineBytes = 4096;  // several times a step's line

std::string utc_now() {
  std::array<char, 32> text{};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

}  // namespace

std::string_view ending_name(Ending ending) {
  switch (ending) {
    case Ending::Finished:
      return "finished";
    case Ending::TimeLimit:
      return "time limit";
    case Ending::Stopped:
      return "stopped";
    case Ending::Failed:
      break;
  }
  return "failed";
}

EventLog::EventLog(const std::string& path)
    : file_("events", path, OutputFile::Mode::Append), opened_(std::chrono::steady_clock::now()) {
  line_.reserve(kLineBytes);
}

std::string EventLog::path_in(const std::string& folder, int rank) {
  return fmt::format("{}/events.rank{}.jsonl", folder, rank);
}

void EventLog::begin(std::string_view event) {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - opened_;
  line_.clear();
  fmt::format_to(std::back_inserter(line_), R"({{"event":"{}","time":{:.6f})", event, time.count());
}

void EventLog::field(std::string_view key, double value) {
  if (value == 0 && std::signbit(value)) {
    fmt::format_to(std::back_inserter(line_), R"(,"{}":-0.0)", key);  // "-0" is an integer to JSON
  } else if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(line_), R"(,"{}":{})", key, value);
  } else {
    fmt::format_to(std::back_inserter(line_), R"(,"{0}":null,"{0}_text":"{1}")", key, value);
  }
}

void EventLog::field(std::string_view key, int64_t value) {
  fmt::format_to(std::back_inserter(line_), R"(,"{}":{})", key, value);
}

void EventLog::field(std::string_view key, std::string_view value) {
  fmt::format_to(std::back_inserter(line_), R"(,"{}":)", key);
  append_json_string(line_, value);
}

void EventLog::end() {
  line_ += "}\n";
  file_.write(line_);
}

void EventLog::run_start(const RunFacts& facts, int rank) {
  const BuildInfo& build = build_info();
  const std::lock_guard<std::mutex> lock(mutex_);
  begin("run_start");
  field("started", utc_now());
  field("recipe", facts.recipe);
  field("folder", facts.folder);
  field("model", facts.model);
  field("parameters", facts.parameters);
  field("rank", int64_t{rank});
  field("ranks", int64_t{facts.ranks});
  field("threads_per_rank", int64_t{facts.threads_per_rank});
  field("tokens_per_step", facts.tokens_per_step);
  field("steps", facts.steps);
  field("time_limit_seconds", facts.time_limit_seconds);
  field("build", build_id());
  field("commit", build.commit);
  line_ += build.modified ? R"(,"modified":true)" : R"(,"modified":false)";
  field("build_type", build.build_type);
  field("compiler", build.compiler);
  field("compiler_flags", build.flags);
  const MachineInfo& machine = facts.machine;
  field("hostname", machine.hostname);
  field("pid", int64_t{::getpid()});
  field("kernel", machine.kernel);
  field("cpu_model", machine.cpu_model);
  field("cores", int64_t{machine.cores});
  field("isa", machine.isa);
  field("memory_total_bytes", machine.memory_total);
  field("memory_available_bytes", machine.memory_available);
  line_ += R"(,"libraries":{)";
  for (const auto& [name, version] : facts.libraries) {
    if (line_.back() != '{') line_ += ',';
    append_json_string(line_, name);
    line_ += ':';
    append_json_string(line_, version);
  }
  line_ += '}';
  end();
}

void EventLog::step(const StepRecord& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  begin("step");
  field("step", record.step);
  field("loss", record.loss);
  field("learning_rate", record.learning_rate);
  field("gradient_norm", record.gradient_norm);
  field("seconds", record.seconds);
  field("tokens", record.tokens);
  field("memory_bytes", record.memory_bytes);
  field("tokens_seen", record.tokens_seen);
  line_ += R"(,"phases":{)";
  for (const auto& [name, member] : kPhases) {
    // A nested object opens with its first field: drop that field's comma.
    const size_t comma = line_.size();
    field(name, record.phases.*member);
    if (line_[comma - 1] == '{') line_.erase(comma, 1);
  }
  line_ += '}';
  end();
}

void EventLog::validation(const ValidationRecord& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  begin("validation");
  field("step", record.step);
  field("loss", record.loss);
  field("tokens", record.tokens);
  field("seconds", record.seconds);
  end();
}

void EventLog::span(std::string_view name, int64_t step, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  begin("span");
  field("name", name);
  field("step", step);
  field("seconds", seconds);
  end();
}

void EventLog::message(log::Level level, std::string_view text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  begin("message");
  field("level", log::level_name(level));
  field("text", text);
  end();
}

void EventLog::run_end(const RunResult& result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  begin("run_end");
  field("outcome", ending_name(result.ending));
  if (!result.error.empty()) field("error", result.error);
  field("steps", result.steps);
  field("tokens", result.tokens);
  field("seconds", result.seconds);
  field("loss", result.loss);
  field("validation_loss", result.validation_loss);
  field("sample", result.sample);
  end();
}

}  // namespace obelisk
