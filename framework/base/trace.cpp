#include "framework/base/trace.h"

#include <fmt/format.h>

#include <exception>
#include <iterator>

#include "framework/base/error.h"

namespace obelisk {
namespace {

constexpr size_t kReservedEvents = 1 << 14;  // a step of a model of hundreds of layers

std::chrono::steady_clock::time_point last_midnight() {
  const auto wall = std::chrono::system_clock::now();
  const auto since_midnight = wall - std::chrono::floor<std::chrono::days>(wall);
  return std::chrono::steady_clock::now() -
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(since_midnight);
}

template <typename Duration>
double microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

thread_local constinit TraceFile* TraceFile::installed_ = nullptr;
thread_local constinit TraceFile* TraceFile::active_ = nullptr;

TraceFile::TraceFile(std::string path, int rank, int64_t first_step, int64_t num_steps)
    : path_(std::move(path)),
      rank_(rank),
      first_step_(first_step),
      end_step_(first_step + num_steps),
      midnight_(last_midnight()) {
  OBELISK_ASSERT(installed_ == nullptr);
  if (num_steps > 0) events_.reserve(kReservedEvents);
  installed_ = this;
}

TraceFile::~TraceFile() {
  installed_ = nullptr;
  active_ = nullptr;
  if (!file_) return;
  try {
    file_->write("\n]\n");
  } catch (const IoError&) {  // without it the file is still readable to the viewers
  }
}

std::string TraceFile::path_in(const std::string& folder, int rank) {
  return fmt::format("{}/trace.rank{}.json", folder, rank);
}

void TraceFile::keep_first_step() {
  for (const Event& event : events_)
    first_records_.push_back({.name = event.name,
                              .category = event.category,
                              .path = event.path == nullptr ? "" : *event.path,
                              .step = first_step_,
                              .begin = microseconds(event.begin - midnight_),
                              .duration = microseconds(event.end - event.begin)});
}

void TraceFile::write_step(int64_t step) {
  if (step == first_step_) keep_first_step();
  text_.clear();
  auto to = std::back_inserter(text_);
  if (!file_) {
    file_.emplace("trace", path_, OutputFile::Mode::Replace);
    fmt::format_to(
        to, R"([{{"name":"process_name","ph":"M","pid":{},"tid":0,"args":{{"name":"rank {}"}}}})",
        rank_, rank_);
  }
  for (const Event& event : events_) {
    fmt::format_to(to,
                   ",\n"
                   R"({{"name":"{}","cat":"{}","ph":"X","pid":{},"tid":0,"ts":{:.3f},"dur":{:.3f},)"
                   R"("args":{{"step":{})",
                   event.name, event.category, rank_, microseconds(event.begin - midnight_),
                   microseconds(event.end - event.begin), step);
    // Paths are names and dots: nothing to escape.
    if (event.path != nullptr && !event.path->empty())
      fmt::format_to(to, R"(,"path":"{}")", *event.path);
    text_ += "}}";
  }
  events_.clear();
  file_->write(text_);
}

void TraceSpan::open(const char* name, const char* category, const std::string* path) {
  name_ = name;
  category_ = category;
  path_ = path;
  begin_ = TraceFile::Clock::now();
}

void TraceSpan::close() { file_->add(name_, category_, path_, begin_, TraceFile::Clock::now()); }

TraceStep::TraceStep(int64_t step) : step_(step) {
  TraceFile* const file = TraceFile::installed_;
  if (file == nullptr || !file->wants(step)) return;
  TraceFile::active_ = file;
  begin_ = TraceFile::Clock::now();
}

TraceStep::~TraceStep() noexcept(false) {
  TraceFile* const file = TraceFile::active_;
  if (file == nullptr) return;
  TraceFile::active_ = nullptr;
  file->add("step", "step", nullptr, begin_, TraceFile::Clock::now());
  // A step that threw has a message of its own.
  if (std::uncaught_exceptions() == 0) file->write_step(step_);
}

}  // namespace obelisk
