#include "framework/config/binder.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "framework/base/error.h"
#include "framework/config/options.pb.h"
#include "framework/config/schema.h"
#include "framework/config/text.h"
#include "framework/config/value.h"
#include "framework/config/yaml_tree.h"

namespace obelisk {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Kind = YamlNode::Kind;

std::string join(const std::string& section, const std::string& name) {
  return section.empty() ? name : section + "." + name;
}

// "in 'train'", "at the top level".
std::string inside(const std::string& section) {
  return section.empty() ? "at the top level" : fmt::format("in '{}'", section);
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case Kind::Null:
      return "nothing";
    case Kind::List:
      return "a list";
    case Kind::Map:
      return "a map";
    default:
      return in_quotes(node.scalar.text);
  }
}

class Binder {
 public:
  Binder(const std::string& file, Message& recipe)
      : file_(file), recipe_(recipe), places_(file), keys_(schema_keys(*recipe.GetDescriptor())) {
    errors_.name_source(file);
  }

  KeyPlaces bind(std::span<const std::string> overrides);

 private:
  struct Override {
    Place place;  // "--set section.key=value"
    std::string section;
    std::string name;
    std::string value;
  };

  std::vector<Override> split_overrides(std::span<const std::string> overrides);
  void bind_file();
  void bind_map(const YamlNode& map, Message& message, const std::string& section, bool used);
  void bind_entry(const YamlEntry& entry, Message& message, const std::string& section);
  void bind_section(const YamlEntry& entry, Message& message, const std::string& path);
  void bind_value(const YamlEntry& entry, Message& message, const FieldDescriptor& field,
                  const std::string& path);
  void bind_use(const YamlEntry& entry, Message& message, const std::string& section);
  void bind_used_file(const Place& place, const std::string& path, Message& message,
                      const std::string& section);
  void bind_override(const Override& override);
  void set(Message& message, const FieldDescriptor& field, const std::string& path,
           const Place& place, const Scalar& scalar);
  void report_unknown(const Place& place, const std::string& name, const std::string& section,
                      std::string_view what);
  std::optional<std::string> find_elsewhere(const std::string& name, const std::string& section);
  std::string find_close(const std::string& name, const std::string& section);
  Message* find_section(const Override& override);
  void check_required();
  bool is_excused(const std::string& path) const;
  bool is_set(const std::string& path) const;

  const std::string file_;
  Message& recipe_;
  KeyPlaces places_;
  const std::vector<SchemaKey> keys_;
  Diagnostics errors_;
  std::map<std::string, Override> uses_;  // section -> its use from the command line
  // Sections and keys with an error of their own: that they are missing is no news.
  std::set<std::string> excused_;
};

KeyPlaces Binder::bind(std::span<const std::string> overrides) {
  recipe_.Clear();
  const std::vector<Override> split = split_overrides(overrides);
  for (const Override& override : split) {
    if (override.name == "use" && !override.section.empty()) uses_[override.section] = override;
  }
  bind_file();
  for (const auto& [section, use] : std::map(uses_)) {
    // The file has no such section.
    if (Message* message = find_section(use)) {
      bind_used_file(use.place, use.value, *message, section);
    }
  }
  for (const Override& override : split) bind_override(override);
  check_required();
  errors_.raise_if_any();
  return places_;
}

std::vector<Binder::Override> Binder::split_overrides(std::span<const std::string> overrides) {
  std::vector<Override> out;
  for (const std::string& text : overrides) {
    const Place place{"--set " + one_line(text), 0, 0};
    const size_t equals = text.find('=');
    const std::string path = text.substr(0, equals);
    if (equals == std::string::npos || path.empty() || path.starts_with('.') ||
        path.ends_with('.') || path.find("..") != std::string::npos) {
      errors_.add(place, "an override is section.key=value; for example --set train.steps=100");
      continue;
    }
    const size_t dot = path.rfind('.');
    const bool nested = dot != std::string::npos;
    out.push_back({place, nested ? path.substr(0, dot) : "", nested ? path.substr(dot + 1) : path,
                   text.substr(equals + 1)});
  }
  return out;
}

void Binder::bind_file() {
  const std::optional<std::string> text = read_text_file(file_, errors_);
  const std::optional<YamlNode> root = text ? parse_yaml(file_, *text, errors_) : std::nullopt;
  if (root && root->kind == Kind::Map) {
    bind_map(*root, recipe_, "", false);
    return;
  }
  if (root && root->kind != Kind::Refused) {
    errors_.add(root->place, fmt::format("a recipe is a map of sections and keys; got {}; write "
                                         "'key: value' lines",
                                         describe(*root)));
  }
  excused_.insert("");
}

// `used`: the map is the content of a file named by "use".
void Binder::bind_map(const YamlNode& map, Message& message, const std::string& section,
                      bool used) {
  const auto from_command_line = used ? uses_.end() : uses_.find(section);
  const bool replaced = from_command_line != uses_.end();
  if (replaced) {
    const Override use = uses_.extract(from_command_line).mapped();
    bind_used_file(use.place, use.value, message, section);
  }
  std::map<std::string, Place> seen;
  for (const YamlEntry& entry : map.entries) {
    const auto [first, fresh] = seen.emplace(entry.key, entry.place);
    if (!fresh) {
      errors_.add(entry.place,
                  fmt::format("{} is given twice {}; first in line {}; keep one",
                              in_quotes(entry.key), inside(section), first->second.line));
    } else if (entry.key == "<<") {
      errors_.add(entry.place,
                  "recipes have no merge keys; got '<<'; put shared keys into a file and begin the "
                  "section with 'use: FILE'");
      excused_.insert(section);
    } else if (entry.key != "use") {
      bind_entry(entry, message, section);
    } else if (section.empty()) {
      errors_.add(entry.place, "'use' stands inside a section; got it at the top level");
    } else if (used) {
      errors_.add(entry.place, "a file named by 'use' has no 'use' itself; write the keys out");
    } else if (&entry != &map.entries.front()) {
      errors_.add(
          entry.place,
          fmt::format("'use' must be the first key of '{}': the others win over it", section));
    } else if (!replaced) {
      bind_use(entry, message, section);
    }
  }
}

void Binder::bind_entry(const YamlEntry& entry, Message& message, const std::string& section) {
  const std::string path = join(section, entry.key);
  const FieldDescriptor* field = find_key(*message.GetDescriptor(), entry.key);
  if (field == nullptr) {
    const bool looks_like_section = section.empty() && entry.value.kind == Kind::Map;
    report_unknown(entry.place, entry.key, section, looks_like_section ? "section" : "key");
  } else if (is_section(*field)) {
    Message* child = message.GetReflection()->MutableMessage(&message, field);
    bind_section(entry, *child, path);
  } else {
    bind_value(entry, message, *field, path);
  }
}

void Binder::bind_section(const YamlEntry& entry, Message& message, const std::string& path) {
  places_.set(path, entry.place);
  const YamlNode& node = entry.value;
  if (node.kind == Kind::Map) {
    bind_map(node, message, path, false);
    return;
  }
  excused_.insert(path);
  if (node.kind == Kind::Null) {
    errors_.add(entry.place, fmt::format("'{}' is a section; got nothing; write its keys below it, "
                                         "indented, or remove the line",
                                         path));
  } else if (node.kind != Kind::Refused) {
    const bool colon = node.kind == Kind::Scalar && node.scalar.text.find(':') != std::string::npos;
    errors_.add(node.place,
                fmt::format("'{}' is a section; got {}; write 'key: value' lines below it, "
                            "indented{}",
                            path, describe(node), colon ? ", with a space after ':'" : ""));
  }
}

void Binder::bind_value(const YamlEntry& entry, Message& message, const FieldDescriptor& field,
                        const std::string& path) {
  const YamlNode& node = entry.value;
  if (node.kind == Kind::Scalar) {
    set(message, field, path, node.place, node.scalar);
    return;
  }
  excused_.insert(path);
  if (node.kind == Kind::Null) {
    // yaml-cpp finds nothing only where the next thing stands, maybe lines below.
    errors_.add(entry.place, fmt::format("'{}' {}; got nothing; write a value or remove the line",
                                         path, type_rule(field)));
  } else if (node.kind != Kind::Refused) {
    errors_.add(node.place, fmt::format("'{}' {}; got {}", path, type_rule(field), describe(node)));
  }
}

void Binder::set(Message& message, const FieldDescriptor& field, const std::string& path,
                 const Place& place, const Scalar& scalar) {
  const std::string problem = set_field(message, field, scalar);
  if (problem.empty()) {
    places_.set(path, place);
  } else {
    errors_.add(place, fmt::format("'{}' {}", path, problem));
    excused_.insert(path);
  }
}

void Binder::bind_use(const YamlEntry& entry, Message& message, const std::string& section) {
  const YamlNode& node = entry.value;
  if (node.kind == Kind::Scalar) {
    bind_used_file(node.place, node.scalar.text, message, section);
    return;
  }
  excused_.insert(section);
  if (node.kind == Kind::Refused) return;
  errors_.add(node.kind == Kind::Null ? entry.place : node.place,
              fmt::format("'{}.use' must be the path of a file; got {}", section, describe(node)));
}

void Binder::bind_used_file(const Place& place, const std::string& path, Message& message,
                            const std::string& section) {
  namespace fs = std::filesystem;
  std::vector<std::string> candidates = {(fs::path(file_).parent_path() / path).string()};
  if (candidates.front() != path) candidates.push_back(path);
  std::string found;
  for (const std::string& candidate : candidates) {
    std::error_code error;
    const bool file = fs::exists(candidate, error) && !fs::is_directory(candidate, error);
    if (found.empty() && file) found = candidate;
  }
  if (path.empty() || found.empty()) {
    for (std::string& candidate : candidates) candidate = in_quotes(candidate);
    errors_.add(place,
                path.empty()
                    ? fmt::format("'{}.use' must be the path of a file; got nothing", section)
                    : fmt::format("'{}.use' must name a file; tried {}", section,
                                  word_list(candidates, "and")));
    excused_.insert(section);
    return;
  }
  const std::optional<std::string> text = read_text_file(found, errors_);
  const std::optional<YamlNode> root = text ? parse_yaml(found, *text, errors_) : std::nullopt;
  if (root && root->kind == Kind::Map) {
    bind_map(*root, message, section, true);
    return;
  }
  if (root && root->kind != Kind::Refused) {
    errors_.add(root->place,
                fmt::format("a file named by 'use' is a map of the keys of '{}'; got {}", section,
                            describe(*root)));
  }
  excused_.insert(section);
}

// The message of the override's section, or null after reporting that there is none.
Message* Binder::find_section(const Override& override) {
  Message* message = &recipe_;
  std::string path;
  for (size_t start = 0; start < override.section.size();) {
    const size_t end = std::min(override.section.find('.', start), override.section.size());
    const std::string name = override.section.substr(start, end - start);
    const FieldDescriptor* field = find_key(*message->GetDescriptor(), name);
    if (field == nullptr) {
      report_unknown(override.place, name, path, "section");
      return nullptr;
    }
    path = join(path, name);
    if (!is_section(*field)) {
      errors_.add(override.place,
                  fmt::format("'{}' is a key, not a section; write --set {}=VALUE", path, path));
      return nullptr;
    }
    message = message->GetReflection()->MutableMessage(message, field);
    start = end + 1;
  }
  return message;
}

void Binder::bind_override(const Override& override) {
  if (override.name == "use" && !override.section.empty()) return;
  Message* message = find_section(override);
  if (message == nullptr) return;
  const std::string path = join(override.section, override.name);
  const FieldDescriptor* field = find_key(*message->GetDescriptor(), override.name);
  if (field == nullptr) {
    report_unknown(override.place, override.name, override.section, "key");
  } else if (is_section(*field)) {
    const std::string example = join(path, field->message_type()->field(0)->name());
    errors_.add(
        override.place,
        fmt::format("'{}' is a section; set its keys, for example --set {}=VALUE", path, example));
  } else {
    set(*message, *field, path, override.place, {override.value, Scalar::Style::CommandLine});
  }
}

void Binder::report_unknown(const Place& place, const std::string& name, const std::string& section,
                            std::string_view what) {
  const std::string start =
      fmt::format("unknown {} {} {}; ", what, in_quotes(name), inside(section));
  if (!section.empty() && section.substr(section.rfind('.') + 1) == name) {
    errors_.add(place, fmt::format("{}the keys of '{}' stand directly in it", start, section));
    excused_.insert(section);
    return;
  }
  for (const SchemaKey& key : keys_) {
    if (key.path != name || key.section.empty()) continue;
    errors_.add(place,
                fmt::format("{}write '{}' {}", start, key.field->name(), inside(key.section)));
    excused_.insert(key.path);
    return;
  }
  if (const std::optional<std::string> elsewhere = find_elsewhere(name, section)) {
    errors_.add(place, fmt::format("{}'{}' belongs {}", start, name, *elsewhere));
    return;
  }
  const std::string close = find_close(name, section);
  if (!close.empty()) {
    errors_.add(place, start + close);
    return;
  }
  std::vector<std::string> names;
  for (const SchemaKey& key : keys_) {
    if (key.section == section) names.push_back(key.field->name());
  }
  errors_.add(place,
              fmt::format("{}known {}: {}", start, section.empty() ? "at the top level" : "here",
                          word_list(names, "and")));
}

// "in 'optimizer'" for a key of exactly that name in other sections.
std::optional<std::string> Binder::find_elsewhere(const std::string& name,
                                                  const std::string& section) {
  std::vector<std::string> homes;
  for (const SchemaKey& key : keys_) {
    if (key.field->name() != name || key.section == section) continue;
    homes.push_back(inside(key.section));
    excused_.insert(key.path);
  }
  if (homes.empty()) return std::nullopt;
  return word_list(homes, "or");
}

// "did you mean 'x'?", first among the keys of the section, then among all.
std::string Binder::find_close(const std::string& name, const std::string& section) {
  std::vector<std::string> here, everywhere;
  for (const SchemaKey& key : keys_) {
    if (key.section == section) here.push_back(key.field->name());
    everywhere.push_back(key.field->name());
  }
  std::string meant = closest(name, here);
  if (!meant.empty()) {
    excused_.insert(join(section, meant));
    return fmt::format("did you mean '{}'?", meant);
  }
  meant = closest(name, everywhere);
  if (meant.empty()) return "";
  std::vector<std::string> homes;
  for (const SchemaKey& key : keys_) {
    if (key.field->name() != meant) continue;
    homes.push_back(inside(key.section));
    excused_.insert(key.path);
  }
  return fmt::format("did you mean '{}' {}?", meant, word_list(homes, "or"));
}

bool Binder::is_excused(const std::string& path) const {
  if (excused_.contains("") || excused_.contains(path)) return true;
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    if (excused_.contains(path.substr(0, dot))) return true;
  }
  return false;
}

bool Binder::is_set(const std::string& path) const {
  const Message* message = &recipe_;
  for (size_t start = 0;;) {
    const size_t end = path.find('.', start);
    const FieldDescriptor* field =
        find_key(*message->GetDescriptor(), path.substr(start, end - start));
    if (!message->GetReflection()->HasField(*message, field)) return false;
    if (end == std::string::npos) return true;
    message = &message->GetReflection()->GetMessage(*message, field);
    start = end + 1;
  }
}

void Binder::check_required() {
  for (const SchemaKey& key : keys_) {
    const recipe::Rules& rules = rules_of(*key.field);
    if (!rules.required() || is_set(key.path) || is_excused(key.path)) continue;
    const std::string home =
        key.section.empty() ? "at the top level" : fmt::format("in '{}'", key.section);
    errors_.add(places_.at(key.path),
                fmt::format("'{}' is required ({}); write it {} or give --set {}=VALUE", key.path,
                            rules.help(), home, key.path));
  }
}

}  // namespace

Place KeyPlaces::at(std::string_view path) const {
  for (;;) {
    if (const auto found = places_.find(path); found != places_.end()) return found->second;
    const size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return {file_, 1, 1};
    path = path.substr(0, dot);
  }
}

KeyPlaces bind_recipe(const std::string& file, std::span<const std::string> overrides,
                      Message& recipe) {
  check_schema(*recipe.GetDescriptor());
  return Binder(file, recipe).bind(overrides);
}

}  // namespace obelisk
