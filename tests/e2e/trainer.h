// What the end-to-end tests share: starting the trainer, and reading what a run leaves behind.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/e2e/process.h"

namespace obelisk::e2e {

inline constexpr const char* kTinyRecipe = "recipes/smoke/gpt_tiny.yaml";

using Words = std::vector<std::string>;

// A folder of its own for each test, removed at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ / name; }
  // Makes a file and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

// The command line that starts the trainer, alone (ranks 0) or under mpirun.
Words trainer_command(const Words& arguments, int ranks = 0);
ProcessOptions trainer_options();

// Runs it to the end.
Outcome trainer(const Words& arguments, int ranks = 0,
                const ProcessOptions& options = trainer_options());

// gpt_tiny into `folder`, with overrides ("section.key=value").
Words tiny_run(const std::string& folder, const Words& overrides = {});

std::string read_file(const std::filesystem::path& path);
std::vector<std::string> lines_of(const std::string& text);

// The lines of an event file whose "event" is `kind`: numbers and texts of the top level. Every
// line must be JSON.
struct Event {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};
std::vector<Event> read_events(const std::filesystem::path& file, const std::string& kind);

// One number of every event of a kind, in order.
std::vector<double> series(const std::filesystem::path& file, const std::string& kind,
                           const std::string& key);

}  // namespace obelisk::e2e
