// What the tests of recipes share: a folder of their own and errors as text.
#pragma once

#include <string>
#include <vector>

#include "recipes/recipe.h"

namespace obelisk {

// A new empty folder, removed with all it holds.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  // The path of `name` in the folder.
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file, making the folders above it; returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  // The text with the folder's path and the '/' after it removed.
  std::string shortened(std::string text) const;

 private:
  std::string path_;
};

// A recipe that loads: one line a section. `head` stands before it, and replaces the lines of the
// base that begin with the same key.
std::string recipe_with(const std::string& head);

// What bind_recipe throws for a file r.yaml of this text, "" when it throws nothing.
std::string bind_errors(const std::string& yaml, const std::vector<std::string>& overrides = {});

// What load_recipe and then validate throw for r.yaml; "" when neither does. No validate for 0
// ranks.
std::string load_errors(const std::string& yaml, const std::vector<std::string>& overrides = {},
                        int num_ranks = 0);

}  // namespace obelisk
