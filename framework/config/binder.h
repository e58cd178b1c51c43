// Strict recipes: YAML and --set overrides bound to a protobuf message whose field options
// (options.proto) say what every key means and may hold.
//
// A recipe is one YAML map of top-level keys and sections. Nothing is guessed and nothing ignored:
// unknown, misplaced, duplicate, mistyped, out-of-range, null and missing keys are errors, and so
// are anchors, aliases, tags and merge keys. All errors are reported at once, one line each,
// "file:line:column: rule; got values; remedy", with the key that was probably meant.
//
// A section may begin with "use: <file>": that file's keys (a map of the section's keys, without
// the section's name) come first and the section's own keys win. The path is looked for beside the
// recipe, then from the working directory. A used file uses no other.
//
// --set section.key=value is bound after the file and wins; of two for the same key the last one
// does. The value is taken as it is, no YAML quoting; --set section.use=file replaces the section's
// "use".
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "framework/config/diagnostics.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace obelisk {

// Where the effective value of each key was written; for rules over several keys.
class KeyPlaces {
 public:
  explicit KeyPlaces(std::string file = "") : file_(std::move(file)) {}
  void set(const std::string& path, const Place& place) { places_[path] = place; }
  // Of the value, else of the section that would hold it, else the first line of the recipe.
  Place at(std::string_view path) const;

 private:
  std::string file_;
  std::map<std::string, Place, std::less<>> places_;
};

// Clears `recipe`, then fills it from the file and the overrides ("section.key=value" each). Throws
// RecipeError that lists all errors; `recipe` is then partly filled.
KeyPlaces bind_recipe(const std::string& file, std::span<const std::string> overrides,
                      google::protobuf::Message& recipe);

// YAML with every key and its effective value, help texts as comments. bind_recipe reads it back to
// the same values. A required key without a value is a comment.
std::string resolved_recipe(const google::protobuf::Message& recipe);

// For --help-recipe: every key with type, range, default and help. `section` names a section or a
// key
// ("train", "train.steps"), "" means all; throws RecipeError when there is no such.
std::string recipe_help(const google::protobuf::Descriptor& schema, const std::string& section);

}  // namespace obelisk
