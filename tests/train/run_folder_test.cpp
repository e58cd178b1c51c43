#include "framework/train/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "framework/base/error.h"
#include "framework/base/output_file.h"
#include "tests/train/temp_folder.h"

namespace obelisk {
namespace {

namespace fs = std::filesystem;

// Makes a run folder in a child process, tells the parent, and holds it until killed.
pid_t hold_in_child(const std::string& base) {
  std::array<int, 2> ready{};
  EXPECT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder held = RunFolder::create(base);
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

void kill_and_wait(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(RunFolder, NumbersRunsAndKeepsTheOldOnes) {
  const TempFolder temp;
  const std::string base = temp.file("a/b/quickstart");
  {
    const RunFolder first = RunFolder::create(base + "/");
    EXPECT_EQ(first.path(), base + "/001");
    EXPECT_EQ(first.file("x.txt"), base + "/001/x.txt");
    write_text(first.file("x.txt"), "kept");
    EXPECT_EQ(fs::read_symlink(base + "/latest"), "001");
  }
  write_text(base + "/notes/me.txt", "not a run");
  fs::create_directory(base + "/7");
  fs::create_directory(base + "/0x9");
  {
    const RunFolder second = RunFolder::create(base);
    EXPECT_EQ(second.path(), base + "/002");
    EXPECT_EQ(fs::read_symlink(base + "/latest"), "002");
  }
  EXPECT_EQ(read_text(base + "/001/x.txt"), "kept");
  fs::create_directory(base + "/999");
  EXPECT_EQ(RunFolder::create(base).path(), base + "/1000");
  EXPECT_EQ(RunFolder::create(base).path(), base + "/1001");
}

TEST(RunFolder, SecondRunIsToldWhoHoldsTheFolder) {
  const TempFolder temp;
  const pid_t child = hold_in_child(temp.file("run"));
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string text = error_of<IoError>([&] { RunFolder::create(temp.file("run")); });
  kill_and_wait(child);
  EXPECT_THAT(text,
              testing::MatchesRegex(
                  "run folder: '.*/run' can serve one run at a time; got a lock held by pid " +
                  std::to_string(child) + " on host '" + std::string(host.data()) +
                  "' since ....-..-..T..:..:..Z; wait for that run, stop it, or choose "
                  "another folder with --set run.folder=..."));
  EXPECT_FALSE(fs::exists(temp.file("run/002")));
}

TEST(RunFolder, SecondRunOfTheSameProcessIsRefusedToo) {
  const TempFolder temp;
  const RunFolder first = RunFolder::create(temp.file("run"));
  EXPECT_THAT(error_of<IoError>([&] { RunFolder::create(temp.file("run")); }),
              testing::HasSubstr("held by pid " + std::to_string(::getpid())));
}

TEST(RunFolder, LockOfAKilledProcessDoesNotBlock) {
  const TempFolder temp;
  kill_and_wait(hold_in_child(temp.file("run")));
  EXPECT_THAT(read_text(temp.file("run/lock")), testing::StartsWith("pid "));
  EXPECT_EQ(RunFolder::create(temp.file("run")).path(), temp.file("run/002"));
  EXPECT_EQ(read_text(temp.file("run/lock")), "");
}

TEST(RunFolder, ChildOfARunDoesNotKeepItsLock) {
  const TempFolder temp;
  pid_t child = 0;
  {
    const RunFolder run = RunFolder::create(temp.file("run"));
    child = ::fork();
    if (child == 0)
      for (;;) ::pause();
  }
  EXPECT_NO_THROW(RunFolder::create(temp.file("run")));
  kill_and_wait(child);
}

TEST(RunFolder, OtherRanksJoinWithoutLock) {
  const TempFolder temp;
  const RunFolder run = RunFolder::create(temp.file("run"));
  EXPECT_EQ(RunFolder::join(run.path()).path(), run.path());
  EXPECT_EQ(RunFolder::join(temp.file("other/node/003")).path(), temp.file("other/node/003"));
  EXPECT_TRUE(fs::is_directory(temp.file("other/node/003")));
}

TEST(RunFolder, FileInTheWay) {
  const TempFolder temp;
  write_text(temp.file("taken"), "");
  const std::string rest =
      "' must be a folder; got a file of that name; move it away or choose another run.folder";
  EXPECT_EQ(error_of<IoError>([&] { RunFolder::create(temp.file("taken")); }),
            "run folder: '" + temp.file("taken") + rest);
  EXPECT_EQ(error_of<IoError>([&] { RunFolder::create(temp.file("taken/deeper")); }),
            "run folder: '" + temp.file("taken") + rest);
}

TEST(RunFolder, LatestThatIsNotALinkIsNotTouched) {
  const TempFolder temp;
  write_text(temp.file("run/latest"), "precious");
  EXPECT_EQ(error_of<IoError>([&] { RunFolder::create(temp.file("run")); }),
            "run folder: '" + temp.file("run/latest") +
                "' must be a link or free; got a file of that name; move it away or choose another "
                "run.folder");
  EXPECT_EQ(read_text(temp.file("run/latest")), "precious");
  fs::remove(temp.file("run/latest"));
  fs::create_directory(temp.file("run/latest"));
  EXPECT_THAT(error_of<IoError>([&] { RunFolder::create(temp.file("run")); }),
              testing::HasSubstr("got a folder of that name"));
}

TEST(RunFolder, EmptyNameIsRefused) {
  EXPECT_EQ(error_of<IoError>([] { RunFolder::create(""); }),
            "run folder: run.folder must name a folder; got ''; set it, for example to runs/mine");
}

TEST(RunFolder, UnwritablePath) {
  const TempFolder temp;
  fs::create_directory(temp.file("closed"));
  fs::permissions(temp.file("closed"), fs::perms::owner_read | fs::perms::owner_exec |
                                           fs::perms::others_read | fs::perms::others_exec);
  fs::permissions(temp.path(), fs::perms::all);
  // Root may write anywhere; as nobody the folder's rights count.
  const bool root = ::geteuid() == 0;
  ASSERT_EQ(root ? ::seteuid(65534) : 0, 0);
  const std::string text = error_of<IoError>([&] { RunFolder::create(temp.file("closed/run")); });
  ASSERT_EQ(root ? ::seteuid(0) : 0, 0);
  EXPECT_EQ(text, "run folder: '" + temp.file("closed/run") +
                      "' must be writable; got: Permission denied; change its rights or choose "
                      "another run.folder");
}

TEST(RunFolder, SentencesOfTheSystemsErrors) {
  EXPECT_EQ(io_error_text("events", "r/e", ENOSPC),
            "events: 'r/e' needs space on its disk; got: No space left on device; free some, or "
            "choose a run.folder on another disk");
  EXPECT_EQ(
      io_error_text("write", "r/e", EDQUOT),
      "write: 'r/e' needs space on its disk; got: Disk quota exceeded; free some, or choose a "
      "run.folder on another disk");
  EXPECT_EQ(
      io_error_text("write", "r/e", EROFS),
      "write: 'r/e' must be writable; got: Read-only file system; change its rights or choose "
      "another run.folder");
  EXPECT_EQ(io_error_text("write", "r/e", EIO),
            "write: 'r/e' must be writable; got: Input/output error; choose another run.folder");
}

TEST(WriteFile, ReplacesAsAWhole) {
  const TempFolder temp;
  write_file(temp.file("x"), "old");
  write_file(temp.file("x"), std::string("new\0text", 8));
  EXPECT_EQ(read_text(temp.file("x")), std::string("new\0text", 8));
  EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), fs::directory_iterator()), 1)
      << "a temporary file was left";
}

TEST(WriteFile, FailureLeavesTheOldFileAndNoTemporary) {
  const TempFolder temp;
  EXPECT_EQ(error_of<IoError>([&] { write_file(temp.file("no/x"), "text"); }),
            "write: '" + temp.file("no/x") +
                "' must be writable; got: No such file or directory; choose another run.folder");
  fs::create_directory(temp.file("folder"));
  EXPECT_EQ(error_of<IoError>([&] { write_file(temp.file("folder"), "text"); }),
            "write: '" + temp.file("folder") +
                "' must be writable; got: Is a directory; choose another run.folder");
  EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace obelisk
