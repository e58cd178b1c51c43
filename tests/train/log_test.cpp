#include "framework/base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace obelisk {
namespace {

// Lines that went to a Scope's descriptor.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Pipe() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int in() const { return ends_[1]; }

  std::string text() {
    ::close(ends_[1]);
    ends_[1] = -1;
    std::string out;
    std::array<char, 4096> block{};
    for (ssize_t size; (size = ::read(ends_[0], block.data(), block.size())) > 0;)
      out.append(block.data(), static_cast<size_t>(size));
    return out;
  }

 private:
  std::array<int, 2> ends_{};
};

TEST(Log, PrintsLevelsOnRankZero) {
  Pipe pipe;
  {
    const log::Scope scope({.fd = pipe.in()});
    log::debug("not {}", "shown");
    log::info("loss {:.2f}", 1.5);
    log::warn("slow disk: {}", "/x");
    log::error("no");
  }
  EXPECT_EQ(pipe.text(), "loss 1.50\nwarning: slow disk: /x\nerror: no\n");
}

TEST(Log, DebugShowsWhenAsked) {
  Pipe pipe;
  {
    const log::Scope scope({.level = log::Level::Debug, .fd = pipe.in()});
    log::debug("{}", 1);
  }
  EXPECT_EQ(pipe.text(), "debug: 1\n");
}

TEST(Log, OtherRanksOnlyWarnAndSayWhoTheyAre) {
  Pipe pipe;
  {
    const log::Scope scope({.rank = 3, .num_ranks = 4, .fd = pipe.in()});
    log::info("nobody hears");
    log::warn("a");
    log::error("b");
  }
  EXPECT_EQ(pipe.text(), "rank 3: warning: a\nrank 3: error: b\n");
}

TEST(Log, WarnOnceIsOncePerPlaceUntilTheScopeEnds) {
  Pipe pipe;
  for (int scopes = 0; scopes < 2; ++scopes) {
    const log::Scope scope({.fd = pipe.in()});
    for (int i = 0; i < 3; ++i) log::warn_once("first {}", i);
    for (int i = 0; i < 3; ++i) log::warn_once("second");
  }
  EXPECT_EQ(pipe.text(), "warning: first 0\nwarning: second\nwarning: first 0\nwarning: second\n");
}

TEST(Log, RouteTakesTheLinesAndGivesThemBack) {
  Pipe pipe;
  std::vector<std::string> lines;
  {
    const log::Scope scope({.fd = pipe.in()});
    {
      const log::Route route([&](log::Level level, std::string_view text) {
        lines.push_back(std::string(log::level_name(level)) + "|" + std::string(text));
      });
      log::warn("in");
    }
    log::warn("out");
  }
  EXPECT_EQ(lines, std::vector<std::string>{"warning|in"});
  EXPECT_EQ(pipe.text(), "warning: out\n");
}

TEST(Log, ObserversSeeBesides) {
  Pipe pipe;
  int seen = 0;
  {
    const log::Scope scope({.fd = pipe.in()});
    const log::Observer observer([&](log::Level, std::string_view) { ++seen; });
    log::warn("x");
  }
  log::warn("after the observer has gone");
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(pipe.text(), "warning: x\n");
}

TEST(Log, AHandlerThatThrowsDoesNotStopTheCaller) {
  Pipe pipe;
  const log::Scope scope({.fd = pipe.in()});
  const log::Observer observer(
      [](log::Level, std::string_view) { throw std::runtime_error("disk full"); });
  testing::internal::CaptureStderr();
  log::warn("x");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: log: a message could not be passed on; got: disk full\n");
}

TEST(Log, ThreadsDoNotTearLines) {
  Pipe pipe;
  {
    const log::Scope scope({.fd = pipe.in()});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t] {
        for (int i = 0; i < 50; ++i) log::warn("{}", std::string(20, static_cast<char>('a' + t)));
      });
    for (std::thread& thread : threads) thread.join();
  }
  std::string rest = pipe.text();
  int lines = 0;
  for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
    const std::string line = rest.substr(0, end);
    ASSERT_EQ(line.size(), 29u);
    ASSERT_EQ(line, "warning: " + std::string(20, line.back()));
    ++lines;
  }
  EXPECT_EQ(lines, 200);
}

}  // namespace
}  // namespace obelisk
