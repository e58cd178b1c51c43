#include "framework/base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace obelisk::log {
namespace {

constexpr const char* kLoggerName = "obelisk";

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::Debug:
      return spdlog::level::debug;
    case Level::Info:
      return spdlog::level::info;
    case Level::Warn:
      return spdlog::level::warn;
    case Level::Error:
      break;
  }
  return spdlog::level::err;
}

Level our_level(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return Level::Debug;
  if (level == spdlog::level::info) return Level::Info;
  return level == spdlog::level::warn ? Level::Warn : Level::Error;
}

// All state of this file lives in the sink of the one logger, which spdlog's registry owns.
class Sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  Options exchange(const Options& options) {
    const std::lock_guard<std::mutex> lock(mutex_);
    said_.clear();
    return std::exchange(options_, options);
  }

  void push_route(Handler print) {
    const std::lock_guard<std::mutex> lock(mutex_);
    routes_.push_back(std::move(print));
  }

  void pop_route() {
    const std::lock_guard<std::mutex> lock(mutex_);
    routes_.pop_back();
  }

  size_t add_observer(Handler see) {
    const std::lock_guard<std::mutex> lock(mutex_);
    observers_.emplace_back(next_id_, std::move(see));
    return next_id_++;
  }

  void remove_observer(size_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(observers_, [id](const auto& observer) { return observer.first == id; });
  }

  bool first_time(const std::source_location& place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return said_.emplace(place.file_name(), place.line(), place.column()).second;
  }

  bool enabled(Level level) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return level >= options_.level && (level != Level::Info || options_.rank == 0);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const Level level = our_level(message.level);
    const std::string_view text(message.payload.data(), message.payload.size());
    for (const auto& [id, see] : observers_) see(level, text);
    if (!routes_.empty()) {
      routes_.back()(level, text);
    } else {
      print(level, text);
    }
  }

  void flush_() override {}

 private:
  // One write for a line, so that lines of several ranks do not mix. Nobody is left to tell when it
  // fails.
  void print(Level level, std::string_view text) const {
    std::string line;
    if (options_.num_ranks > 1 && level != Level::Info)
      line += fmt::format("rank {}: ", options_.rank);
    if (level != Level::Info) line += fmt::format("{}: ", level_name(level));
    line += text;
    line += '\n';
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t written = ::write(options_.fd, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }

  Options options_;
  std::vector<Handler> routes_;
  std::vector<std::pair<size_t, Handler>> observers_;
  size_t next_id_ = 0;
  std::set<std::tuple<std::string, unsigned, unsigned>> said_;
};

std::shared_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_shared<spdlog::logger>(kLoggerName, std::make_shared<Sink>());
  logger->set_level(spdlog::level::debug);  // Sink::enabled decides
  logger->set_error_handler([](const std::string& what) {
    const std::string line = "error: log: a message could not be passed on; got: " + what + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  });
  try {
    spdlog::register_logger(logger);
  } catch (const spdlog::spdlog_ex&) {  // another thread was faster
    return spdlog::get(kLoggerName);
  }
  return logger;
}

std::shared_ptr<spdlog::logger> logger() {
  auto found = spdlog::get(kLoggerName);
  return found ? found : make_logger();
}

Sink& sink() { return static_cast<Sink&>(*logger()->sinks().front()); }

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::Debug:
      return "debug";
    case Level::Info:
      return "info";
    case Level::Warn:
      return "warning";
    case Level::Error:
      break;
  }
  return "error";
}

Scope::Scope(const Options& options) : outer_(sink().exchange(options)) {}
Scope::~Scope() { sink().exchange(outer_); }

Route::Route(Handler print) { sink().push_route(std::move(print)); }
Route::~Route() { sink().pop_route(); }

Observer::Observer(Handler see) : id_(sink().add_observer(std::move(see))) {}
Observer::~Observer() { sink().remove_observer(id_); }

bool enabled(Level level) { return sink().enabled(level); }

void write(Level level, std::string_view text) {
  logger()->log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}

bool first_time(const std::source_location& place) { return sink().first_time(place); }

}  // namespace obelisk::log
