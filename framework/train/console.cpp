#include "framework/train/console.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "framework/train/report_text.h"

namespace obelisk {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kRecent = 10;  // seconds
constexpr int kMinBar = 10;
constexpr int kMaxBar = 40;
constexpr int kWriteWaitMs = 200;  // for a reader that does not read; then the text is dropped

constexpr const char* kPlain = "\x1b[0m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kCyan = "\x1b[36m";
constexpr const char* kErase = "\r\x1b[K";
constexpr const char* kHideCursor = "\x1b[?25l";
constexpr const char* kShowCursor = "\x1b[?25h";

int tty_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// The value of a variable, empty when it is not set.
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// The first of the three variables that is set decides, as in setlocale.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(environment(name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

// The value of a "Key:\tvalue" line of /proc/<pid>/status.
std::string process_status(int pid, std::string_view key) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.size() > key.size() + 2 && line.compare(0, key.size(), key) == 0 &&
        line[key.size()] == ':')
      return line.substr(key.size() + 2);
  }
  return "";
}

int digits(int64_t value) { return static_cast<int>(fmt::formatted_size("{}", value)); }

// At most eight columns, nine with a sign.
void append_eight(std::string& out, double value) {
  if (std::abs(value) < 1000) {
    fmt::format_to(std::back_inserter(out), "{:.4f}", value);
  } else {
    fmt::format_to(std::back_inserter(out), "{:.2e}", value);
  }
}

// Right-aligns what `append` writes.
template <typename Append>
void append_right(std::string& out, size_t width, Append append) {
  const size_t begin = out.size();
  append(out);
  const size_t length = out.size() - begin;
  if (length < width) out.insert(begin, width - length, ' ');
}

}  // namespace

Terminal look_at_terminal(int fd, const std::string& launcher) {
  Terminal terminal;
  if (::isatty(fd) != 1 || environment("TERM") == "dumb") return terminal;
  int columns = 0;
  if (launcher.empty()) {
    columns = tty_columns(fd);
  } else {
    const int out = ::open(launcher.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (out < 0) return terminal;
    const bool is_terminal = ::isatty(out) == 1;
    columns = tty_columns(out);
    ::close(out);
    if (!is_terminal) return terminal;
  }
  terminal.live = true;
  if (columns > 0) terminal.columns = columns;
  return terminal;
}

std::string launcher_output(int pid) {
  constexpr std::array<std::string_view, 8> kLaunchers = {
      "mpirun", "mpiexec", "orterun", "prterun", "prun", "orted", "prted", "hydra_pmi_proxy"};
  if (pid == 0) pid = ::getpid();
  for (int level = 0; level < 8 && pid > 1; ++level) {
    const std::string parent = process_status(pid, "PPid");
    pid = parent.empty() ? 0 : std::atoi(parent.c_str());
    if (pid <= 1) break;
    const std::string name = process_status(pid, "Name");
    if (std::find(kLaunchers.begin(), kLaunchers.end(), name) != kLaunchers.end())
      return fmt::format("/proc/{}/fd/1", pid);
  }
  return "";
}

Console::Console(ConsoleOptions options) : options_(std::move(options)) {
  live_ = look_at_terminal(options_.fd, options_.launcher).live;
  utf8_ = locale_is_utf8();
  buffer_.reserve(4096);
  scratch_.reserve(512);
}

Console::~Console() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!drawn_) return;
  buffer_ += '\n';
  buffer_ += kShowCursor;
  flush();
}

void Console::style(const char* code) {
  if (live_ && environment("NO_COLOR").empty()) buffer_ += code;
}

void Console::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(options_.fd, rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    pollfd wait{options_.fd, POLLOUT, 0};
    if (written < 0 && errno == EAGAIN && ::poll(&wait, 1, kWriteWaitMs) > 0) continue;
    break;
  }
  buffer_.clear();
}

void Console::start_clock() {
  if (started_) return;
  started_ = true;
  start_ = std::chrono::steady_clock::now();
}

double Console::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

double Console::fraction() const {
  double done = 0;
  if (options_.steps > 0)
    done = static_cast<double>(last_.step) / static_cast<double>(options_.steps);
  if (options_.time_limit_seconds > 0)
    done = std::max(done, elapsed() / options_.time_limit_seconds);
  return std::clamp(done, 0.0, 1.0);
}

double Console::seconds_left() const {
  double left = kUnknown;
  if (options_.steps > 0 && recent_steps_ > 0)
    left = static_cast<double>(options_.steps - last_.step) * recent_seconds_ / recent_steps_;
  if (options_.time_limit_seconds > 0) {
    const double by_time = std::max(0.0, options_.time_limit_seconds - elapsed());
    left = std::isnan(left) ? by_time : std::min(left, by_time);
  }
  return left;
}

void Console::track(const StepRecord& record) {
  const double keep = std::exp(-std::max(0.0, record.seconds) / kRecent);
  recent_seconds_ = recent_seconds_ * keep + record.seconds;
  recent_tokens_ = recent_tokens_ * keep + record.tokens;
  recent_steps_ = recent_steps_ * keep + 1;
  last_ = record;
}

void Console::head(const RunFacts& facts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  start_clock();
  const auto row = [&](std::string_view label, const std::string& value) {
    style(kDim);
    fmt::format_to(std::back_inserter(buffer_), "  {:<8}", label);
    style(kPlain);
    buffer_ += printable(value);
    buffer_ += '\n';
  };
  style(kBold);
  buffer_ += build_id();
  style(kPlain);
  buffer_ += '\n';
  row("recipe", facts.recipe);
  row("folder", facts.folder);
  row("model", fmt::format("{}, {} parameters", facts.model,
                           count_text(static_cast<double>(facts.parameters))));
  row("ranks", fmt::format("{} rank{} x {} thread{}", facts.ranks, facts.ranks == 1 ? "" : "s",
                           facts.threads_per_rank, facts.threads_per_rank == 1 ? "" : "s"));
  std::string length = fmt::format("{} tokens a step", facts.tokens_per_step);
  if (facts.steps > 0)
    length += fmt::format(", {} step{}", facts.steps, facts.steps == 1 ? "" : "s");
  if (facts.time_limit_seconds > 0)
    length += fmt::format(", at most {}", duration_text(facts.time_limit_seconds));
  row("batch", length);
  const MachineInfo& machine = facts.machine;
  row("machine", fmt::format("{}, {} cores, {}, {} memory", machine.cpu_model, machine.cores,
                             machine.isa, bytes_text(static_cast<double>(machine.memory_total))));
  buffer_ += '\n';
  flush();
}

void Console::step(const StepRecord& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  start_clock();
  track(record);
  const bool last = record.step == options_.steps;
  if (!live_) {
    if (!last && record.step != 1 && record.step % options_.log_every != 0) return;
    append_step_line();
    flush();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> since = now - last_draw_;
  if (drawn_ && !last && since.count() < kRedrawSeconds) return;
  last_draw_ = now;
  draw_live();
  flush();
}

// step     120/2000  loss   2.4310  lr 9.98e-04  grad    0.912  tok/s  12.3k  mem  312 MiB  eta ...
void Console::append_step_line() {
  const auto out = std::back_inserter(buffer_);
  fmt::format_to(out, "step  {:>{}}", last_.step, std::max(6, digits(options_.steps)));
  if (options_.steps > 0) fmt::format_to(out, "/{}", options_.steps);
  buffer_ += "  loss ";
  append_right(buffer_, 8, [&](std::string& text) { append_eight(text, last_.loss); });
  fmt::format_to(out, "  lr {:.2e}  grad ", last_.learning_rate);
  append_right(buffer_, 8, [&](std::string& text) { append_eight(text, last_.gradient_norm); });
  buffer_ += "  tok/s ";
  append_right(buffer_, 6,
               [&](std::string& text) { append_count(text, recent_tokens_ / recent_seconds_); });
  buffer_ += "  mem ";
  append_right(buffer_, 8, [&](std::string& text) {
    append_bytes(text, static_cast<double>(last_.memory_bytes));
  });
  buffer_ += "  eta ";
  append_right(buffer_, 7, [&](std::string& text) { append_duration(text, seconds_left()); });
  buffer_ += '\n';
}

struct Console::Field {
  const char* label;  // "" for none
  int weight;         // the lightest goes first when the line is too long
  size_t begin, end;  // the value, in scratch_
  bool shown;

  int columns() const {
    const size_t label_columns = *label == '\0' ? 0 : std::string_view(label).size() + 1;
    return static_cast<int>(2 + label_columns + end - begin);
  }
};

void Console::draw_live() {
  if (!drawn_) buffer_ += kHideCursor;
  buffer_ += kErase;
  // One column stays free: a full last column makes some terminals wrap.
  append_fields(std::max(1, look_at_terminal(options_.fd, options_.launcher).columns - 1));
  drawn_ = true;
}

void Console::append_fields(int columns) {
  scratch_.clear();
  std::array<Field, 8> fields{};
  size_t count = 0;
  const auto add = [&](const char* label, int weight, auto append) {
    Field& field = fields[count++];
    field = {label, weight, scratch_.size(), 0, true};
    append();
    field.end = scratch_.size();
  };
  const auto out = std::back_inserter(scratch_);
  add("step", 8, [&] {
    fmt::format_to(out, "{:>{}}", last_.step, digits(options_.steps));
    if (options_.steps > 0) fmt::format_to(out, "/{}", options_.steps);
  });
  add("loss", 9, [&] { append_eight(scratch_, last_.loss); });
  if (!std::isnan(validation_loss_))
    add("val", 7, [&] { append_eight(scratch_, validation_loss_); });
  add("", 5, [&] {
    append_count(scratch_, recent_tokens_ / recent_seconds_);
    scratch_ += " tok/s";
  });
  add("eta", 6, [&] { append_duration(scratch_, seconds_left()); });
  add("grad", 4, [&] { fmt::format_to(out, "{:.3g}", last_.gradient_norm); });
  add("lr", 3, [&] { fmt::format_to(out, "{:.2e}", last_.learning_rate); });
  add("mem", 2, [&] { append_bytes(scratch_, static_cast<double>(last_.memory_bytes)); });

  constexpr int kPercent = 4;
  int used = kPercent;
  for (size_t i = 0; i < count; ++i) used += fields[i].columns();
  const int smallest_bar = columns >= 40 ? kMinBar + 1 : 0;
  for (int weight = 0; weight < 10 && used + smallest_bar > columns; ++weight) {
    for (size_t i = 0; i < count; ++i) {
      if (fields[i].weight != weight) continue;
      fields[i].shown = false;
      used -= fields[i].columns();
    }
  }
  const size_t begin = buffer_.size();
  fmt::format_to(std::back_inserter(buffer_), "{:>3.0f}%", std::floor(100 * fraction()));
  if (columns < kPercent) buffer_.resize(begin + static_cast<size_t>(columns));
  const int room = std::min(kMaxBar, columns - used - 1);
  if (room >= kMinBar) append_bar(room);
  for (size_t i = 0; i < count; ++i) {
    const Field& field = fields[i];
    if (!field.shown) continue;
    buffer_ += "  ";
    if (*field.label != '\0') {
      style(kDim);
      buffer_ += field.label;
      buffer_ += ' ';
      style(kPlain);
    }
    const bool bad = std::string_view(field.label) == "loss" && !std::isfinite(last_.loss);
    if (bad) style(kRed);
    buffer_.append(scratch_, field.begin, field.end - field.begin);
    if (bad) style(kPlain);
  }
}

void Console::append_bar(int width) {
  const int done = static_cast<int>(fraction() * width);
  buffer_ += ' ';
  style(kCyan);
  for (int i = 0; i < done; ++i) buffer_ += utf8_ ? "\u2501" : "#";
  style(kPlain);
  style(kDim);
  for (int i = done; i < width; ++i) buffer_ += utf8_ ? "\u2500" : "-";
  style(kPlain);
}

void Console::put_line() {
  buffer_ += '\n';
  if (drawn_) draw_live();
  flush();
}

void Console::validation(const ValidationRecord& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  validation_loss_ = record.loss;
  const bool best = !(record.loss >= best_validation_) && std::isfinite(record.loss);
  if (best) best_validation_ = record.loss;
  if (drawn_) buffer_ += kErase;
  style(kBold);
  buffer_ += "valid";
  style(kPlain);
  const auto out = std::back_inserter(buffer_);
  fmt::format_to(out, " {:>{}}", record.step, std::max(6, digits(options_.steps)));
  if (options_.steps > 0) fmt::format_to(out, "/{}", options_.steps);
  buffer_ += "  loss ";
  append_right(buffer_, 8, [&](std::string& text) { append_eight(text, record.loss); });
  fmt::format_to(out, "  tokens {}  in ", record.tokens);
  append_duration(buffer_, record.seconds);
  if (best) {
    style(kGreen);
    buffer_ += "  best";
    style(kPlain);
  }
  put_line();
}

void Console::message(log::Level level, std::string_view text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (drawn_) buffer_ += kErase;
  if (level != log::Level::Info) {
    style(level == log::Level::Error ? kRed : level == log::Level::Warn ? kYellow : kDim);
    buffer_ += log::level_name(level);
    buffer_ += ": ";
    style(kPlain);
  }
  buffer_ += printable(text);
  put_line();
}

void Console::finish(const RunResult& result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (drawn_) {
    buffer_ += kErase;
    buffer_ += kShowCursor;
    drawn_ = false;
  }
  const bool failed = result.ending == Ending::Failed;
  const auto out = std::back_inserter(buffer_);
  buffer_ += '\n';
  style(failed ? kRed : kGreen);
  buffer_ += ending_name(result.ending);
  style(kPlain);
  fmt::format_to(out, " after {}, {} step{}, {} tokens\n", duration_text(result.seconds),
                 result.steps, result.steps == 1 ? "" : "s",
                 count_text(static_cast<double>(result.tokens)));
  if (failed && !result.error.empty()) buffer_ += "  " + printable(result.error) + "\n";
  const auto row = [&](std::string_view label, const std::string& value) {
    style(kDim);
    fmt::format_to(out, "  {:<17}", label);
    style(kPlain);
    buffer_ += value;
    buffer_ += '\n';
  };
  const auto loss_row = [&](std::string_view label, double loss) {
    std::string text;
    append_eight(text, loss);
    row(label, text);
  };
  if (result.steps > 0) loss_row("loss", result.loss);
  if (!std::isnan(validation_loss_) || !std::isnan(result.validation_loss))
    loss_row("validation loss", result.validation_loss);
  if (result.seconds > 0 && result.tokens > 0)
    row("speed", count_text(static_cast<double>(result.tokens) / result.seconds) + " tokens/s");
  if (!result.report.empty()) row("report", printable(result.report));
  if (!result.sample.empty()) {
    buffer_ += '\n';
    style(kBold);
    buffer_ += "sample";
    style(kPlain);
    buffer_ += '\n' + printable(result.sample) + '\n';
  }
  flush();
}

}  // namespace obelisk
