#include "tests/config/support.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/base/error.h"

namespace obelisk {
namespace {

constexpr const char* kBase =
    "task: pretrain\n"
    "model: {kind: gpt2, num_layers: 2, num_heads: 2, width: 8, context_length: 16}\n"
    "tokenizer: {kind: char}\n"
    "data: {path: a.txt}\n"
    "batch: {sequences: 4, sequence_length: 16}\n"
    "optimizer: {peak_lr: 0.001}\n"
    "train: {steps: 10}\n";

std::string key_of(const std::string& line) { return line.substr(0, line.find(':')); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TempFolder::TempFolder() {
  path_ = testing::TempDir() + "obelisk_config_XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw IoError("cannot make a folder at " + path_);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, const std::string& text) const {
  const std::string file = path(name);
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

std::string TempFolder::shortened(std::string text) const {
  const std::string prefix = path_ + "/";
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
    text.erase(at, prefix.size());
  }
  return text;
}

std::string recipe_with(const std::string& head) {
  std::string out = head.empty() || head.ends_with('\n') ? head : head + "\n";
  for (const std::string& line : lines_of(kBase)) {
    bool replaced = false;
    for (const std::string& own : lines_of(head)) replaced |= key_of(own) == key_of(line);
    if (!replaced) out += line + "\n";
  }
  return out;
}

std::string bind_errors(const std::string& yaml, const std::vector<std::string>& overrides) {
  const TempFolder folder;
  const std::string file = folder.write("r.yaml", yaml);
  recipe::Recipe recipe;
  try {
    bind_recipe(file, overrides, recipe);
  } catch (const RecipeError& error) {
    return folder.shortened(error.what());
  }
  return "";
}

std::string load_errors(const std::string& yaml, const std::vector<std::string>& overrides,
                        int num_ranks) {
  const TempFolder folder;
  const std::string file = folder.write("r.yaml", yaml);
  try {
    const LoadedRecipe loaded = load_recipe(file, overrides);
    if (num_ranks > 0) validate(loaded, num_ranks);
  } catch (const RecipeError& error) {
    return folder.shortened(error.what());
  }
  return "";
}

}  // namespace obelisk
