// Messages for people: debug, info, warn, error. A thin front of spdlog.
//
// Rank 0 speaks for the run: info is printed there only. Warnings and errors are printed on every
// rank, with the rank's number when there are several. No logging inside kernels, none a
// micro-batch at info.
//
// A line goes to the file descriptor of the Options in force (standard error at first), or to the
// innermost LogRoute: the console takes the lines over while its live line is up. LogObservers see
// the same lines besides: the event log keeps warnings and errors. Handlers must not log
// themselves.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <functional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

namespace obelisk::log {

enum class Level { Debug, Info, Warn, Error };

// "debug", "info", "warning", "error".
std::string_view level_name(Level level);

struct Options {
  int rank = 0;
  int num_ranks = 1;
  Level level = Level::Info;  // the lowest that is printed
  int fd = 2;
};

// Puts options in force; the destructor brings back those before, and forgets what warn_once said.
class Scope {
 public:
  explicit Scope(const Options& options);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Options outer_;
};

// Receives a line's level and its text, without rank, level word or newline.
using Handler = std::function<void(Level, std::string_view)>;

class Route {
 public:
  explicit Route(Handler print);
  ~Route();
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;
};

class Observer {
 public:
  explicit Observer(Handler see);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

 private:
  size_t id_;
};

bool enabled(Level level);
void write(Level level, std::string_view text);

// True the first time a place in the source asks, until the Scope ends.
bool first_time(const std::source_location& place);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Debug)) write(Level::Debug, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Info)) write(Level::Info, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Warn)) write(Level::Warn, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Error)) write(Level::Error, fmt::format(format, std::forward<Args>(args)...));
}

// A format string that knows where it was written.
template <typename... Args>
struct PlacedFormat {
  template <typename Text>
  consteval PlacedFormat(const Text& text,  // NOLINT: implicit, taken from a literal
                         std::source_location place = std::source_location::current())
      : format(text), place(place) {}
  fmt::format_string<Args...> format;
  std::source_location place;
};

// Warns the first time this call is reached, whatever the arguments.
template <typename... Args>
void warn_once(PlacedFormat<std::type_identity_t<Args>...> format, Args&&... args) {
  if (enabled(Level::Warn) && first_time(format.place))
    write(Level::Warn, fmt::format(format.format, std::forward<Args>(args)...));
}

}  // namespace obelisk::log
