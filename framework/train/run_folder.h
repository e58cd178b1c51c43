// Where a run keeps its files. Nothing in it is ever overwritten: each run writes into a numbered
// folder of its own below the recipe's run.folder.
//
//     runs/quickstart/lock      held by the run that is going on; empty when none is
//     runs/quickstart/001/      the first run: recipe.yaml, events.rank0.jsonl, report.html, ...
//     runs/quickstart/002/      the second
//     runs/quickstart/latest    link to the newest
//
// One run at a time uses a folder. The lock is the kernel's (flock), so it ends with the process
// that holds it, however that ends; the text in the file only tells whom to look for.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace obelisk {

class RunFolder {
 public:
  // Rank 0: makes `base` and its parents, locks it, makes the next numbered folder. Throws IoError
  // when another run holds the lock, when a file is in the way, and when it cannot be written.
  static RunFolder create(const std::string& base);

  // The other ranks: the folder that rank 0 made, named by the text it sent. Made here too when the
  // node does not share rank 0's file system. Takes no lock.
  static RunFolder join(const std::string& path);

  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();  // gives the lock back

  const std::string& path() const { return path_; }  // "runs/quickstart/002"
  std::string file(std::string_view name) const;     // "runs/quickstart/002/<name>"

 private:
  RunFolder(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}

  std::string path_;
  int lock_fd_;  // -1 without a lock
};

// Replaces a file as a whole: written beside it under a temporary name, then renamed, so a reader
// and a crash of this process see the old text or the new. Throws IoError.
void write_file(const std::string& path, std::string_view text);

}  // namespace obelisk
