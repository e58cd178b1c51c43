#include "framework/train/run_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/output_file.h"

namespace obelisk {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "run folder";

// Closes on every way out.
class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

  // errno, or 0. A file system over a network may find its disk full only here.
  int close() { return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno; }

 private:
  int fd_;
};

// errno of the first failure, 0 when all was written.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

void make_folders(const std::string& path) {
  fs::path sofar;
  for (const fs::path& part : fs::path(path)) {
    sofar /= part;
    std::error_code error;
    const fs::file_status status = fs::status(sofar, error);
    if (fs::is_directory(status)) continue;
    OBELISK_CHECK(!fs::exists(status), IoError,
                  "run folder: '{}' must be a folder; got a file of that name; move it away or "
                  "choose another run.folder",
                  sofar.string());
    // EEXIST: another rank was faster.
    if (::mkdir(sofar.c_str(), 0777) != 0 && errno != EEXIST)
      throw IoError(io_error_text(kPlace, sofar.string(), errno));
  }
}

std::string lock_text() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::array<char, 32> started{};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(started.data(), started.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return fmt::format("pid {} on host '{}' since {}\n", ::getpid(), host.data(), started.data());
}

std::string lock_owner(int fd) {
  std::array<char, 512> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size() - 1, 0);
  const std::string owner(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  const size_t end = owner.find('\n');
  // The owner may be between taking the lock and writing its name.
  return end == std::string::npos ? "a run that is just starting" : owner.substr(0, end);
}

// Returns the descriptor that holds the lock.
int lock_folder(const std::string& base) {
  const std::string path = base + "/lock";
  File file(path, O_RDWR | O_CREAT);
  if (file.fd() < 0) throw IoError(io_error_text(kPlace, path, errno));
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    // A file system without locks, for example.
    if (errno != EWOULDBLOCK) throw IoError(io_error_text(kPlace, path, errno));
    raise<IoError>(
        "run folder: '{}' can serve one run at a time; got a lock held by {}; wait for that run, "
        "stop it, or choose another folder with --set run.folder=...",
        base, lock_owner(file.fd()));
  }
  const std::string text = lock_text();
  int error = ::ftruncate(file.fd(), 0) == 0 ? write_all(file.fd(), text) : errno;
  if (error != 0) throw IoError(io_error_text(kPlace, path, error));
  return file.release();
}

// The number in a folder's name, 0 when it is not one of ours.
int run_number(const std::string& name) {
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool all = error == std::errc() && end == name.data() + name.size();
  return all && name.size() >= 3 && number > 0 ? number : 0;
}

std::string make_numbered(const std::string& base) {
  int last = 0;
  std::error_code error;
  for (fs::directory_iterator it(base, error), end; !error && it != end; it.increment(error))
    last = std::max(last, run_number(it->path().filename().string()));
  if (error) throw IoError(io_error_text(kPlace, base, error.value()));
  const std::string path = fmt::format("{}/{:03}", base, last + 1);
  if (::mkdir(path.c_str(), 0777) != 0) throw IoError(io_error_text(kPlace, path, errno));
  return path;
}

// Before anything is made: 'latest' is ours to replace only when it is a link.
void check_latest(const std::string& base) {
  const std::string path = base + "/latest";
  struct stat status {};
  OBELISK_CHECK(::lstat(path.c_str(), &status) != 0 || S_ISLNK(status.st_mode), IoError,
                "run folder: '{}' must be a link or free; got a {} of that name; move it away or "
                "choose another run.folder",
                path, S_ISDIR(status.st_mode) ? "folder" : "file");
}

// A convenience: a file system without links does not stop a run.
void point_latest(const std::string& base, const std::string& path) {
  const std::string fresh = base + "/.latest";
  ::unlink(fresh.c_str());
  const std::string target = fs::path(path).filename().string();
  if (::symlink(target.c_str(), fresh.c_str()) == 0)
    ::rename(fresh.c_str(), (base + "/latest").c_str());
}

}  // namespace

RunFolder RunFolder::create(const std::string& base) {
  OBELISK_CHECK(!base.empty(), IoError,
                "run folder: run.folder must name a folder; got ''; set it, for example to "
                "runs/mine");
  std::string folder = base;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  make_folders(folder);
  check_latest(folder);
  const int lock_fd = lock_folder(folder);
  RunFolder run("", lock_fd);
  run.path_ = make_numbered(folder);
  point_latest(folder, run.path_);
  return run;
}

RunFolder RunFolder::join(const std::string& path) {
  make_folders(path);
  return RunFolder(path, -1);
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_fd_(std::exchange(other.lock_fd_, -1)) {}

RunFolder::~RunFolder() {
  if (lock_fd_ < 0) return;
  // The file stays: a run that waits to open it must not lock a name that is gone.
  [[maybe_unused]] const int emptied = ::ftruncate(lock_fd_, 0);
  ::flock(lock_fd_, LOCK_UN);  // closing alone would leave it with a forked child
  ::close(lock_fd_);
}

std::string RunFolder::file(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

void write_file(const std::string& path, std::string_view text) {
  const std::string fresh = fmt::format("{}.{}.tmp", path, ::getpid());
  int error = 0;
  {
    File file(fresh, O_WRONLY | O_CREAT | O_TRUNC);
    error = file.fd() < 0 ? errno : write_all(file.fd(), text);
    if (file.fd() >= 0 && error == 0) error = file.close();
  }
  if (error == 0 && ::rename(fresh.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(fresh.c_str());
  throw IoError(io_error_text("write", path, error));
}

}  // namespace obelisk
