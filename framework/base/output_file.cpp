#include "framework/base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "framework/base/error.h"

namespace obelisk {

std::string io_error_text(std::string_view place, std::string_view path, int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return fmt::format(
          "{}: '{}' must be writable; got: {}; change its rights or choose another "
          "run.folder",
          place, path, std::strerror(error));
    case ENOSPC:
    case EDQUOT:
      return fmt::format(
          "{}: '{}' needs space on its disk; got: {}; free some, or choose a "
          "run.folder on another disk",
          place, path, std::strerror(error));
    default:
      return fmt::format("{}: '{}' must be writable; got: {}; choose another run.folder", place,
                         path, std::strerror(error));
  }
}

OutputFile::OutputFile(std::string place, std::string path, Mode mode)
    : place_(std::move(place)),
      path_(std::move(path)),
      fd_(::open(path_.c_str(),
                 O_WRONLY | O_CREAT | O_CLOEXEC | (mode == Mode::Append ? O_APPEND : O_TRUNC),
                 0666)) {
  if (fd_ < 0) throw IoError(io_error_text(place_, path_, errno));
}

OutputFile::~OutputFile() { ::close(fd_); }

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw IoError(io_error_text(place_, path_, written < 0 ? errno : EIO));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace obelisk
