// Where something was written, and the list of everything wrong with a recipe.
#pragma once

#include <string>
#include <vector>

namespace obelisk {

// A position in a recipe. Lines and columns count from 1, columns in bytes. line 0: the source is
// not a file but an override of the command line, "--set section.key=value".
struct Place {
  std::string source;
  int line = 0;
  int column = 0;
};

// "file:line:column", or the source alone when it has no lines.
std::string to_string(const Place& place);

// Collects errors so that a user sees all of them at once.
class Diagnostics {
 public:
  // `message` follows "rule; got values; remedy".
  void add(const Place& place, const std::string& message);
  bool empty() const { return errors_.empty(); }
  // Throws RecipeError with one line an error: by source in the order in which sources were first
  // named, then by line and column. Returns when there is none.
  void raise_if_any();
  // Fixes the place of a source in that order.
  void name_source(const std::string& source);

 private:
  struct Error {
    int rank;
    Place place;
    std::string message;
  };
  int source_rank(const std::string& source);

  std::vector<std::string> sources_;
  std::vector<Error> errors_;
};

}  // namespace obelisk
