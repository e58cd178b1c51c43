#include "tests/e2e/process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "framework/base/error.h"

namespace obelisk::e2e {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Between fork and exec: only calls that are safe there, and everything prepared before.
[[noreturn]] void become(char* const* arguments, const char* folder, bool obey_permissions, int out,
                         int err) {
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (chdir(folder) != 0) _exit(126);
  // Root reads and writes everything by these two capabilities; exec gives them back only within
  // the bounding set.
  if (obey_permissions && geteuid() == 0 &&
      (prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) != 0 ||
       prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0) != 0))
    _exit(126);
  execvp(arguments[0], arguments);
  _exit(127);
}

void append_from(int& descriptor, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t count = read(descriptor, buffer.data(), buffer.size());
  if (count > 0) {
    text.append(buffer.data(), static_cast<size_t>(count));
  } else {
    close(descriptor);
    descriptor = -1;
  }
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const ProcessOptions& options)
    : deadline_(now() + options.seconds) {
  std::vector<std::string> words;
  if (!options.environment.empty()) words.push_back("env");
  for (const auto& [name, value] : options.environment) words.push_back(name + "=" + value);
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  std::array<int, 2> out{}, err{};
  OBELISK_ASSERT(pipe2(out.data(), O_CLOEXEC) == 0 && pipe2(err.data(), O_CLOEXEC) == 0);
  pid_ = fork();
  OBELISK_ASSERT(pid_ >= 0);
  if (pid_ == 0)
    become(arguments.data(), options.folder.c_str(), options.obey_permissions, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (int descriptor : {out_, err_})
    if (descriptor >= 0) close(descriptor);
}

double Process::seconds_left() const { return deadline_ - now(); }

bool Process::read_some() {
  if (out_ < 0 && err_ < 0) return false;
  const double left = seconds_left();
  if (left <= 0) return false;
  std::array<pollfd, 2> waiting{pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  if (poll(waiting.data(), waiting.size(), static_cast<int>(left * 1000) + 1) <= 0)
    return seconds_left() > 0;
  if (waiting[0].revents != 0) append_from(out_, outcome_.out);
  if (waiting[1].revents != 0) append_from(err_, outcome_.err);
  return true;
}

bool Process::wait_for(const std::string& text) {
  while (outcome_.out.find(text) == std::string::npos)
    if (!read_some()) return outcome_.out.find(text) != std::string::npos;
  return true;
}

Outcome Process::finish() {
  while (read_some()) {
  }
  const bool in_time = seconds_left() > 0;
  if (!in_time) kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome_.exit_code = !in_time            ? 124
                       : WIFEXITED(status) ? WEXITSTATUS(status)
                                           : 128 + WTERMSIG(status);
  return outcome_;
}

}  // namespace obelisk::e2e
