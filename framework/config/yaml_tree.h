// A YAML file as a tree with a place for every key and value, and nothing guessed: duplicate keys
// are kept, quoting is kept, null is null. Anchors, aliases and tags are refused here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/diagnostics.h"
#include "framework/config/scalar.h"

namespace obelisk {

struct YamlEntry;

struct YamlNode {
  enum class Kind : uint8_t {
    Null,
    Scalar,
    List,  // items are not kept: no key of a recipe takes a list
    Map,
    Refused,  // its error has been reported
  };
  Kind kind = Kind::Null;
  Place place;
  Scalar scalar;
  std::vector<YamlEntry> entries;  // of a Map, in the order of the file
};

struct YamlEntry {
  std::string key;
  Place place;
  YamlNode value;
};

// The content of a text file of at most 256 KiB, UTF-8 without zero bytes and without a byte order
// mark; otherwise nothing, and an error at its first line.
std::optional<std::string> read_text_file(const std::string& path, Diagnostics& errors);

// Parses the one document in `text`; `source` names it in places. Nothing when the text is no YAML
// or holds no document. More documents, tabs as indentation, anchors, aliases and tags are errors.
std::optional<YamlNode> parse_yaml(const std::string& source, std::string_view text,
                                   Diagnostics& errors);

}  // namespace obelisk
