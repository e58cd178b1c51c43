#include "framework/train/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/train/allocation_count.h"
#include "tests/train/temp_folder.h"

namespace obelisk {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kHide = "\x1b[?25l";
constexpr const char* kShow = "\x1b[?25h";
constexpr const char* kErase = "\r\x1b[K";

// A pseudo-terminal of a given width; the program's end is `fd`.
class Pty {
 public:
  explicit Pty(int columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    EXPECT_EQ(::openpty(&reader_, &fd_, nullptr, nullptr, &size), 0);
    ::fcntl(reader_, F_SETFL, O_NONBLOCK);
  }
  ~Pty() {
    ::close(fd_);
    ::close(reader_);
  }
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;

  int fd() const { return fd_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  void resize(int columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    EXPECT_EQ(::ioctl(fd_, TIOCSWINSZ, &size), 0);
  }

  // What was written since the last call; the terminal turns newlines into \r\n.
  std::string take() {
    std::string out;
    std::array<char, 4096> block{};
    for (ssize_t size; (size = ::read(reader_, block.data(), block.size())) > 0;)
      out.append(block.data(), static_cast<size_t>(size));
    return out;
  }

 private:
  int reader_ = -1, fd_ = -1;
};

// The environment of a test, whatever that of ctest is.
class ConsoleTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TERM", "xterm", 1);
    ::setenv("LC_ALL", "C", 1);
    ::unsetenv("NO_COLOR");
  }
};
using LiveConsole = ConsoleTest;
using PlainConsole = ConsoleTest;
using TerminalProbe = ConsoleTest;

// Without escape sequences; columns of text only.
std::string visible(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) == 0) ++i;
    } else if (text[i] != '\r') {
      out += text[i];
    }
  }
  return out;
}

StepRecord step_at(int64_t step) {
  StepRecord record;
  record.step = step;
  record.loss = 2.431;
  record.learning_rate = 9.98e-4;
  record.gradient_norm = 0.912;
  record.seconds = 0.5;
  record.tokens = 8192;
  record.memory_bytes = int64_t{312} << 20;
  return record;
}

class File {
 public:
  File() : path_(folder_.file("out")), fd_(::open(path_.c_str(), O_CREAT | O_WRONLY, 0666)) {}
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  std::string text() const { return read_text(path_); }

 private:
  TempFolder folder_;
  std::string path_;
  int fd_;
};

TEST_F(PlainConsole, OneLineALoggedStepInFixedColumns) {
  const File file;
  Console console({.fd = file.fd(), .steps = 2000, .log_every = 10});
  for (int i = 1; i <= 20; ++i) console.step(step_at(i));
  StepRecord odd = step_at(30);
  odd.loss = kNan;
  odd.gradient_norm = 1234567;
  console.step(odd);
  odd.loss = 123456;
  odd.step = 2000;
  console.step(odd);
  EXPECT_EQ(file.text(),
            "step       1/2000  loss   2.4310  lr 9.98e-04  grad   0.9120  tok/s  16.4k  mem  312 "
            "MiB  eta   16:40\n"
            "step      10/2000  loss   2.4310  lr 9.98e-04  grad   0.9120  tok/s  16.4k  mem  312 "
            "MiB  eta   16:35\n"
            "step      20/2000  loss   2.4310  lr 9.98e-04  grad   0.9120  tok/s  16.4k  mem  312 "
            "MiB  eta   16:30\n"
            "step      30/2000  loss      nan  lr 9.98e-04  grad 1.23e+06  tok/s  16.4k  mem  312 "
            "MiB  eta   16:25\n"
            "step    2000/2000  loss 1.23e+05  lr 9.98e-04  grad 1.23e+06  tok/s  16.4k  mem  312 "
            "MiB  eta    0:00\n");
}

TEST_F(PlainConsole, WithoutAStepLimit) {
  const File file;
  Console console({.fd = file.fd(), .time_limit_seconds = 100});
  console.step(step_at(1));
  EXPECT_THAT(file.text(), StartsWith("step       1  loss   2.4310"));
  EXPECT_THAT(file.text(), EndsWith("eta    1:40\n"));
}

TEST_F(PlainConsole, TimeLeftIsWhicheverEndsFirst) {
  const File file;
  Console console({.fd = file.fd(), .steps = 11, .time_limit_seconds = 100});
  console.step(step_at(1));
  EXPECT_THAT(file.text(), EndsWith("eta    0:05\n"));
}

TEST_F(PlainConsole, ValidationAndMessages) {
  const File file;
  Console console({.fd = file.fd(), .steps = 2000});
  console.validation({250, 2.1021, 111540, 3.2});
  console.validation({500, 2.2, 111540, 3.2});
  console.validation({750, kNan, 111540, 3.2});
  console.message(log::Level::Warn, "slow \x1b[2J disk");
  console.message(log::Level::Info, "plain");
  console.message(log::Level::Error, "bad");
  EXPECT_EQ(file.text(),
            "valid    250/2000  loss   2.1021  tokens 111540  in 0:03  best\n"
            "valid    500/2000  loss   2.2000  tokens 111540  in 0:03\n"
            "valid    750/2000  loss      nan  tokens 111540  in 0:03\n"
            "warning: slow \xEF\xBF\xBD[2J disk\n"
            "plain\n"
            "error: bad\n");
}

RunFacts some_facts() {
  RunFacts facts;
  facts.recipe = "recipes/llm/quickstart.yaml";
  facts.folder = "runs/quickstart/001";
  facts.model = "gpt2, 6 layers, width 192";
  facts.parameters = 2700000;
  facts.ranks = 2;
  facts.tokens_per_step = 8192;
  facts.steps = 2000;
  facts.time_limit_seconds = 120;
  facts.machine.cpu_model = "Test CPU";
  facts.machine.cores = 2;
  facts.machine.isa = "avx2";
  facts.machine.memory_total = int64_t{8} << 30;
  return facts;
}

TEST_F(PlainConsole, Head) {
  const File file;
  Console console({.fd = file.fd()});
  console.head(some_facts());
  EXPECT_EQ(file.text(), build_id() +
                             "\n"
                             "  recipe  recipes/llm/quickstart.yaml\n"
                             "  folder  runs/quickstart/001\n"
                             "  model   gpt2, 6 layers, width 192, 2.7M parameters\n"
                             "  ranks   2 ranks x 1 thread\n"
                             "  batch   8192 tokens a step, 2000 steps, at most 2:00\n"
                             "  machine Test CPU, 2 cores, avx2, 8 GiB memory\n"
                             "\n");
}

TEST_F(PlainConsole, FinalBlock) {
  const File file;
  Console console({.fd = file.fd()});
  console.validation({2000, 1.7012, 1000, 1});
  RunResult result;
  result.ending = Ending::TimeLimit;
  result.steps = 2000;
  result.tokens = 16384000;
  result.seconds = 121;
  result.loss = 1.6213;
  result.validation_loss = 1.7012;
  result.report = "runs/quickstart/001/report.html";
  result.sample = "In the beginning\x07";
  console.finish(result);
  EXPECT_THAT(file.text(), EndsWith("\n\n"
                                    "time limit after 2:01, 2000 steps, 16.4M tokens\n"
                                    "  loss             1.6213\n"
                                    "  validation loss  1.7012\n"
                                    "  speed            135k tokens/s\n"
                                    "  report           runs/quickstart/001/report.html\n"
                                    "\n"
                                    "sample\n"
                                    "In the beginning\xEF\xBF\xBD\n"));
}

TEST_F(PlainConsole, FailedRunSaysWhy) {
  const File file;
  Console console({.fd = file.fd()});
  RunResult result;
  result.ending = Ending::Failed;
  result.error = "out of memory";
  result.steps = 1;
  console.finish(result);
  EXPECT_EQ(file.text(),
            "\nfailed after 0:00, 1 step, 0 tokens\n  out of memory\n  loss             nan\n");
}

TEST_F(LiveConsole, RedrawsInPlaceAndGivesTheCursorBack) {
  Pty pty(100);
  {
    Console console({.fd = pty.fd(), .steps = 2});
    console.step(step_at(1));
    const std::string first = pty.take();
    EXPECT_THAT(first, StartsWith(std::string(kHide) + kErase));
    EXPECT_THAT(first, Not(HasSubstr("\n")));
    EXPECT_THAT(visible(first), StartsWith(" 50% "));
    EXPECT_THAT(visible(first), HasSubstr("  step 1/2  loss 2.4310  "));
    console.step(step_at(2));
    const std::string second = pty.take();
    EXPECT_THAT(second, StartsWith(kErase));
    EXPECT_THAT(second, Not(HasSubstr(kHide)));
    EXPECT_THAT(visible(second), StartsWith("100% "));
    console.finish({});
    EXPECT_THAT(pty.take(), StartsWith(std::string(kErase) + kShow));
  }
  EXPECT_EQ(pty.take(), "");
}

TEST_F(LiveConsole, CursorComesBackWhenAnExceptionPasses) {
  Pty pty(100);
  try {
    Console console({.fd = pty.fd(), .steps = 10});
    console.step(step_at(1));
    pty.take();
    throw std::runtime_error("x");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(pty.take(), std::string("\r\n") + kShow);
}

TEST_F(LiveConsole, FitsEveryWidth) {
  for (int columns = 1; columns <= 200; ++columns) {
    Pty pty(columns);
    Console console({.fd = pty.fd(), .steps = 2000000});
    console.validation({1, 2.2, 1, 1});
    pty.take();
    console.step(step_at(1234567));
    const std::string line = visible(pty.take());
    EXPECT_LE(line.size(), static_cast<size_t>(std::max(1, columns - 1))) << line;
    EXPECT_GE(line.size(), static_cast<size_t>(std::min(4, std::max(1, columns - 1)))) << line;
    if (columns >= 24) {
      EXPECT_THAT(line, HasSubstr("loss 2.4310")) << columns;
    }
    if (columns >= 80) {
      EXPECT_THAT(line, HasSubstr("#")) << columns;
    }
    if (columns >= 160) {
      for (const char* part :
           {"step", "val 2.2000", "tok/s", "eta", "grad 0.912", "lr 9.98e-04", "mem 312 MiB"})
        EXPECT_THAT(line, HasSubstr(part)) << columns;
    }
  }
}

TEST_F(LiveConsole, FollowsAResize) {
  Pty pty(200);
  Console console({.fd = pty.fd(), .steps = 3});
  console.step(step_at(1));
  EXPECT_GT(visible(pty.take()).size(), 100u);
  pty.resize(40);
  console.step(step_at(3));
  EXPECT_LE(visible(pty.take()).size(), 39u);
}

TEST_F(LiveConsole, IsDrawnAtMostTenTimesASecond) {
  Pty pty(100);
  Console console({.fd = pty.fd(), .steps = 100000});
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= 2000; ++i) console.step(step_at(i));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::string text = pty.take();
  int draws = 0;
  for (size_t at = text.find(kErase); at != std::string::npos; at = text.find(kErase, at + 1))
    ++draws;
  EXPECT_GE(draws, 1);
  EXPECT_LE(draws, 2 + static_cast<int>(seconds * 10));
}

TEST_F(LiveConsole, LinesStandAboveTheLiveLine) {
  Pty pty(100);
  Console console({.fd = pty.fd(), .steps = 10});
  console.step(step_at(1));
  pty.take();
  console.validation({1, 2.25, 10, 1});
  const std::string text = pty.take();
  EXPECT_THAT(text, StartsWith(kErase));
  EXPECT_THAT(
      visible(text),
      testing::MatchesRegex(
          "valid      1/10  loss   2\\.2500  tokens 10  in 0:01  best\n 10% .*val 2\\.2500.*"));
  console.message(log::Level::Warn, "hot");
  EXPECT_THAT(visible(pty.take()), testing::MatchesRegex("warning: hot\n 10% .*"));
}

TEST_F(LiveConsole, LogLinesGoThroughTheConsole) {
  Pty pty(100);
  const log::Scope scope({});
  Console console({.fd = pty.fd(), .steps = 10});
  const log::Route route(
      [&](log::Level level, std::string_view text) { console.message(level, text); });
  console.step(step_at(1));
  pty.take();
  log::warn("disk at {}%", 99);
  EXPECT_THAT(visible(pty.take()), testing::MatchesRegex("warning: disk at 99%\n 10% .*"));
}

TEST_F(LiveConsole, ColourUnlessRefused) {
  Pty pty(100);
  {
    Console console({.fd = pty.fd(), .steps = 10});
    console.step(step_at(1));
  }
  EXPECT_THAT(pty.take(), HasSubstr("\x1b[36m"));
  ::setenv("NO_COLOR", "1", 1);
  {
    Console console({.fd = pty.fd(), .steps = 10});
    console.step(step_at(1));
  }
  ::unsetenv("NO_COLOR");
  const std::string text = pty.take();
  EXPECT_THAT(text, Not(testing::ContainsRegex("\x1b\\[[0-9]*m")));
  EXPECT_THAT(text, StartsWith(std::string(kHide) + kErase));
}

TEST_F(LiveConsole, BarUsesLinesWhereTheLocaleHasThem) {
  ::setenv("LC_ALL", "C.UTF-8", 1);
  Pty pty(100);
  Console console({.fd = pty.fd(), .steps = 2});
  console.step(step_at(1));
  EXPECT_THAT(pty.take(), HasSubstr("\u2501\u2501\u2501"));
}

TEST_F(LiveConsole, NanLossIsRed) {
  Pty pty(100);
  Console console({.fd = pty.fd(), .steps = 2});
  StepRecord record = step_at(1);
  record.loss = kNan;
  console.step(record);
  EXPECT_THAT(pty.take(), HasSubstr("\x1b[31mnan\x1b[0m"));
}

TEST_F(LiveConsole, SteadyStateAllocatesNothing) {
  Pty pty(140);
  Console console({.fd = pty.fd(), .steps = 1000000, .time_limit_seconds = 1000});
  console.validation({1, 2.2, 1, 1});
  console.step(step_at(1));
  pty.take();
  const int64_t before = allocation_count();
  for (int i = 2; i < 5; ++i) {
    console.step(step_at(i));
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
  }
  EXPECT_EQ(allocation_count() - before, 0);
  EXPECT_THAT(visible(pty.take()), HasSubstr("step       4/1000000")) << "nothing was drawn";
}

TEST_F(LiveConsole, AWindowThatWasClosedDoesNotEndTheRun) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
  Console console({.fd = ends[1], .steps = 10});
  console.step(step_at(1));
  ::close(ends[0]);
  EXPECT_NO_THROW(console.step(step_at(10)));
  EXPECT_NO_THROW(console.finish({}));
  ::close(ends[1]);
}

TEST_F(TerminalProbe, FilesAndDumbTerminalsAreNotLive) {
  const File file;
  EXPECT_FALSE(look_at_terminal(file.fd(), "").live);
  Pty pty(100);
  EXPECT_TRUE(look_at_terminal(pty.fd(), "").live);
  EXPECT_EQ(look_at_terminal(pty.fd(), "").columns, 100);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(look_at_terminal(pty.fd(), "").live);
}

TEST_F(TerminalProbe, UnknownWidthIsEighty) {
  Pty pty(0);
  EXPECT_TRUE(look_at_terminal(pty.fd(), "").live);
  EXPECT_EQ(look_at_terminal(pty.fd(), "").columns, 80);
}

TEST_F(TerminalProbe, BelowALauncherItsOutputDecides) {
  Pty ours(0), terminal(132);
  const TempFolder temp;
  write_text(temp.file("log"), "");
  EXPECT_FALSE(look_at_terminal(ours.fd(), temp.file("log")).live);
  EXPECT_FALSE(look_at_terminal(ours.fd(), temp.file("missing")).live);
  EXPECT_TRUE(look_at_terminal(ours.fd(), terminal.path()).live);
  EXPECT_EQ(look_at_terminal(ours.fd(), terminal.path()).columns, 132);
  const File file;
  EXPECT_FALSE(look_at_terminal(file.fd(), terminal.path()).live) << "the rank redirected itself";
}

// A copy of sh under the name mpirun, which starts a sh: the launcher is found through the script.
TEST_F(TerminalProbe, FindsTheLauncherAmongTheParents) {
  const TempFolder temp;
  const std::string path = temp.file("mpirun");
  std::filesystem::copy_file("/bin/sh", path);
  std::array<int, 2> in{}, out{};
  ASSERT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    // The commands after keep a sh from replacing itself by its last child.
    ::execl(path.c_str(), path.c_str(), "-c", "sh -c 'echo $$; read line; :'; :", nullptr);
    ::_exit(127);
  }
  std::array<char, 32> pid{};
  EXPECT_GT(::read(out[0], pid.data(), pid.size() - 1), 0);
  EXPECT_EQ(launcher_output(std::atoi(pid.data())), "/proc/" + std::to_string(launcher) + "/fd/1");
  for (const int end : {in[0], in[1], out[0], out[1]}) ::close(end);  // read ends the script
  int status = 0;
  EXPECT_EQ(::waitpid(launcher, &status, 0), launcher);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(launcher_output(1), "");
}

}  // namespace
}  // namespace obelisk
