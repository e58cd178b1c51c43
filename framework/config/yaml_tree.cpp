#include "framework/config/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>
#include <utility>

#include "framework/config/text.h"

namespace obelisk {
namespace {

constexpr size_t kLargestFile = 256 * 1024;

// Builds the tree from parser events: unlike YAML::Node, events tell where keys stand, keep
// duplicates and show anchors, aliases and tags.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& source, Diagnostics& errors)
      : source_(source), errors_(errors), last_{source, 1, 1} {}

  std::optional<YamlNode> take_root() { return std::move(root_); }
  // Of the last node that was read, line 1 before there is any.
  const Place& last_place() const { return last_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++num_documents_ == 2) {
      errors_.add(place(mark),
                  "a file holds one YAML document; got a second one; remove what follows");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    add(make(YamlNode::Kind::Null, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    errors_.add(place(mark), "recipes have no aliases; got '*'; write the value out");
    add(make(YamlNode::Kind::Refused, mark));
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    errors_.add(place(mark),
                fmt::format("recipes have no anchors; got {}; write the value where it is used",
                            in_quotes("&" + name)));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    YamlNode node = make(YamlNode::Kind::Scalar, mark);
    if (!check_tag(mark, tag)) node.kind = YamlNode::Kind::Refused;
    // yaml-cpp marks plain scalars with the tag "?" and quoted ones with "!".
    node.scalar = {value, tag == "?" ? Scalar::Style::Plain : Scalar::Style::Quoted};
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    start(YamlNode::Kind::List, mark, tag);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    start(YamlNode::Kind::Map, mark, tag);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlNode node;
    std::optional<YamlNode> key;  // of a Map, once read and until its value comes
  };

  Place place(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }

  YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode node;
    node.kind = kind;
    node.place = last_ = place(mark);
    return node;
  }

  bool check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return true;
    errors_.add(place(mark),
                fmt::format("recipes have no tags; got {}; remove it", in_quotes(tag)));
    return false;
  }

  void start(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    check_tag(mark, tag);
    open_.push_back({make(kind, mark), std::nullopt});
  }

  void end() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      if (num_documents_ == 1) root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::List) return;
    if (!parent.key) {
      parent.key = std::move(node);
      return;
    }
    const YamlNode key = std::move(*parent.key);
    parent.key.reset();
    if (key.kind == YamlNode::Kind::Scalar) {
      parent.node.entries.push_back({key.scalar.text, key.place, std::move(node)});
    } else if (key.kind != YamlNode::Kind::Refused) {
      errors_.add(key.place, "a key must be a word; got null, a list or a map before ':'");
    }
  }

  const std::string source_;
  Diagnostics& errors_;
  Place last_;
  int num_documents_ = 0;
  std::vector<Open> open_;
  std::optional<YamlNode> root_;
};

// YAML forbids tabs as indentation; yaml-cpp takes some of them for spaces.
bool check_tabs(const std::string& source, std::string_view text, Diagnostics& errors) {
  bool clean = true;
  int line = 1;
  for (size_t start = 0; start < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view content = text.substr(start, end - start);
    const size_t first = content.find_first_not_of(" \t\r");
    const size_t tab = content.find('\t');
    const bool blank = first == std::string_view::npos || content[first] == '#';
    if (!blank && tab < first) {
      errors.add({source, line, static_cast<int>(tab) + 1},
                 "YAML is indented with spaces; got a tab; write spaces (inside text: \"\\t\")");
      clean = false;
    }
    start = end + 1;
  }
  return clean;
}

// yaml-cpp's terms for the frequent slips, in words of the user's side.
std::string syntax_rule(const std::string& message) {
  namespace Msg = YAML::ErrorMsg;
  if (message == Msg::EOF_IN_SCALAR) return "a quote that opens after this is never closed";
  if (message == Msg::END_OF_MAP_FLOW) return "a '{' has no '}'";
  if (message == Msg::END_OF_SEQ_FLOW) return "a '[' has no ']'";
  if (message == Msg::END_OF_MAP) return "this fits no key above; see the indentation and the ':'";
  if (message == Msg::MAP_VALUE)
    return "a ':' makes no key here; quote text that holds ': ', or see the line above";
  return one_line(message) + "; see the indentation, colons and quotes here";
}

// yaml-cpp marks a file that ends too soon at its end or not at all; the last node it read says
// more.
Place syntax_place(const YAML::Exception& error, const Place& last) {
  const Place place{last.source, error.mark.line + 1, error.mark.column + 1};
  const bool before = std::tie(place.line, place.column) < std::tie(last.line, last.column);
  return before || error.msg == YAML::ErrorMsg::EOF_IN_SCALAR ? last : place;
}

}  // namespace

std::optional<std::string> read_text_file(const std::string& path, Diagnostics& errors) {
  const Place top{path, 0, 0};  // a file that was not read has no lines
  const auto unreadable = [&](const std::string& reason) {
    errors.add(top,
               fmt::format("cannot read the file: {}; check the path and its permissions", reason));
    return std::nullopt;
  };
  std::error_code status_error;
  if (std::filesystem::is_directory(path, status_error)) return unreadable("it is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(std::strerror(errno));
  std::string text(kLargestFile + 1, '\0');
  try {
    file.exceptions(std::ios::badbit);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
  } catch (const std::ios_base::failure&) {
    return unreadable(std::strerror(errno));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kLargestFile) {
    errors.add(top,
               "a recipe is at most 256 KiB of YAML; got a larger file; is this the right one?");
    return std::nullopt;
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  const size_t bad = std::min(text.find('\0'), invalid_utf8(text));
  if (bad != std::string::npos) {
    const auto before = text.begin() + static_cast<std::ptrdiff_t>(bad);
    const int line = 1 + static_cast<int>(std::count(text.begin(), before, '\n'));
    const size_t line_start = text.substr(0, bad).rfind('\n') + 1;  // npos + 1 is 0
    errors.add({path, line, static_cast<int>(bad - line_start) + 1},
               fmt::format("a recipe is UTF-8 text; got byte 0x{:02x}; is this the right file?",
                           static_cast<unsigned char>(text[bad])));
    return std::nullopt;
  }
  return text;
}

std::optional<YamlNode> parse_yaml(const std::string& source, std::string_view text,
                                   Diagnostics& errors) {
  if (!check_tabs(source, text, errors)) return std::nullopt;
  TreeBuilder builder(source, errors);
  // yaml-cpp takes the end of the file for the end of a quote when a line break stands before it. A
  // comment as the last line changes nothing else.
  std::istringstream stream(std::string(text) + (text.ends_with('\n') ? "#" : "\n#"));
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      errors.add({source, 1, 1}, "the file is empty; write 'key: value' lines");
      return std::nullopt;
    }
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    errors.add(syntax_place(error, builder.last_place()),
               "not valid YAML: " + syntax_rule(error.msg));
    return std::nullopt;
  }
  return builder.take_root();
}

}  // namespace obelisk
