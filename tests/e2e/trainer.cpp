#include "tests/e2e/trainer.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/base/error.h"

namespace obelisk::e2e {

TempFolder::TempFolder() {
  std::string name = std::filesystem::temp_directory_path() / "obelisk_e2e_XXXXXX";
  OBELISK_ASSERT(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream out(path_ / name, std::ios::binary);
  out << text;
  out.close();
  OBELISK_ASSERT(out.good());
  return file(name);
}

Words trainer_command(const Words& arguments, int ranks) {
  Words command;
  if (ranks > 0)
    command = {MPIEXEC, "-n", std::to_string(ranks), "--bind-to", "none", "--oversubscribe"};
  command.push_back(TRAINER);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

ProcessOptions trainer_options() {
  ProcessOptions options;
  options.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                         {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                         {"OMP_WAIT_POLICY", "passive"}};
  return options;
}

Outcome trainer(const Words& arguments, int ranks, const ProcessOptions& options) {
  return Process(trainer_command(arguments, ranks), options).finish();
}

Words tiny_run(const std::string& folder, const Words& overrides) {
  Words arguments = {"--config", kTinyRecipe, "--set", "run.folder=" + folder};
  for (const std::string& override : overrides) {
    arguments.push_back("--set");
    arguments.push_back(override);
  }
  return arguments;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  OBELISK_CHECK(in.good(), IoError, "test: '{}' must exist", path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<Event> read_events(const std::filesystem::path& file, const std::string& kind) {
  std::vector<Event> events;
  for (const std::string& line : lines_of(read_file(file))) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") != kind) continue;
    Event& event = events.emplace_back();
    for (const auto& [key, value] : json.items()) {
      if (value.is_number()) event.numbers[key] = value.get<double>();
      if (value.is_string()) event.texts[key] = value.get<std::string>();
    }
  }
  return events;
}

std::vector<double> series(const std::filesystem::path& file, const std::string& kind,
                           const std::string& key) {
  std::vector<double> values;
  for (const Event& event : read_events(file, kind)) values.push_back(event.numbers.at(key));
  return values;
}

}  // namespace obelisk::e2e
