// Runs programs for the end-to-end tests, with their output captured.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace obelisk::e2e {

struct Outcome {
  int exit_code = -1;  // 128 + signal number when a signal ended it; 124 when it ran past its limit
  std::string out;
  std::string err;
};

struct ProcessOptions {
  std::string folder = ".";                        // working directory
  std::map<std::string, std::string> environment;  // added to ours
  double seconds = 120;                            // then the process is killed
  bool obey_permissions = false;                   // root too is bound by file permissions
};

// A child process whose output is collected until it ends. Killed, with what it started, if it
// still runs when this object goes.
class Process {
 public:
  Process(const std::vector<std::string>& command, const ProcessOptions& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Reads until the text appears on standard output (true), or until the process ends or the limit
  // passes (false).
  bool wait_for(const std::string& text);
  // Reads until the end.
  Outcome finish();

 private:
  // One round of reading; false when both pipes are closed or the limit has passed.
  bool read_some();
  double seconds_left() const;

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  double deadline_ = 0;
  Outcome outcome_;
};

}  // namespace obelisk::e2e
