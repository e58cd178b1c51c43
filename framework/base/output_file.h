// Files that a run writes as it goes.
#pragma once

#include <string>
#include <string_view>

namespace obelisk {

// The sentence of an IoError, from errno: "events: 'runs/a/001/events.rank0.jsonl' needs space on
// its disk; got: No space left on device; free some, or choose a run.folder on another disk".
// `place` is who speaks.
std::string io_error_text(std::string_view place, std::string_view path, int error);

class OutputFile {
 public:
  enum class Mode { Append, Replace };
  // Makes the file when missing. `place` speaks in errors: "events". Throws IoError.
  OutputFile(std::string place, std::string path, Mode mode);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  // By one write(), unless the disk fills up or a signal comes in between; allocates nothing.
  // Throws IoError when it cannot be written whole.
  void write(std::string_view bytes);

 private:
  std::string place_, path_;
  int fd_;
};

}  // namespace obelisk
