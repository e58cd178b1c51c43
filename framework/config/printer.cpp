// The resolved recipe and the help text: the schema written out, with values and without.
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <memory>

#include "framework/base/error.h"
#include "framework/config/binder.h"
#include "framework/config/options.pb.h"
#include "framework/config/schema.h"
#include "framework/config/text.h"
#include "framework/config/value.h"

namespace obelisk {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kCommentColumn = 36;
constexpr int kHelpColumn = 26;

bool is_missing(const Message& message, const FieldDescriptor& field) {
  return rules_of(field).required() && !message.GetReflection()->HasField(message, &field);
}

void print_keys(const Message& message, int indent, std::string& out) {
  const Descriptor& schema = *message.GetDescriptor();
  for (int i = 0; i < schema.field_count(); ++i) {
    const FieldDescriptor& field = *schema.field(i);
    const std::string start = std::string(static_cast<size_t>(indent), ' ') + field.name() + ":";
    const std::string& help = rules_of(field).help();
    if (is_section(field)) {
      out += fmt::format("\n{:<{}}  # {}\n", start, kCommentColumn, help);
      print_keys(message.GetReflection()->GetMessage(message, &field), indent + 2, out);
    } else if (is_missing(message, field)) {
      out += fmt::format("# {:<{}}  # required: {}\n", start, kCommentColumn - 2, help);
    } else {
      out += fmt::format("{:<{}}  # {}\n", start + " " + field_yaml(message, field), kCommentColumn,
                         help);
    }
  }
}

// "integer, at least 1, required"; `empty` is a message without values, for defaults.
std::string value_help(const Message& empty, const FieldDescriptor& field) {
  std::string out = type_text(field);
  const std::string range = range_text(field);
  if (!range.empty()) out += ", " + range;
  if (rules_of(field).required()) return out + ", required";
  return out + ", default " + field_yaml(empty, field);
}

void print_help(const SchemaKey& key, std::string& out) {
  const size_t depth = static_cast<size_t>(std::count(key.path.begin(), key.path.end(), '.'));
  const std::string name = std::string(2 * depth, ' ') + key.field->name();
  const std::string& help = rules_of(*key.field).help();
  if (is_section(*key.field)) {
    out += fmt::format("{}{:<{}}{}\n", out.empty() ? "" : "\n", name, kHelpColumn, help);
    return;
  }
  const Message& empty = *google::protobuf::MessageFactory::generated_factory()->GetPrototype(
      key.field->containing_type());
  out += fmt::format("{:<{}}{}\n{:{}}{}\n", name, kHelpColumn, value_help(empty, *key.field), "",
                     kHelpColumn, help);
}

}  // namespace

std::string resolved_recipe(const Message& recipe) {
  std::string out = "# Resolved recipe: every key with the value in effect.\n";
  print_keys(recipe, 0, out);
  return out;
}

std::string recipe_help(const Descriptor& schema, const std::string& section) {
  std::string out;
  std::vector<std::string> paths;
  for (const SchemaKey& key : schema_keys(schema)) {
    paths.push_back(key.path);
    const bool wanted =
        section.empty() || key.path == section || key.path.starts_with(section + ".");
    if (wanted) print_help(key, out);
  }
  if (!out.empty()) return out;
  std::string meant;
  for (const std::string& path : paths) {
    if (meant.empty() && path.ends_with("." + section)) meant = path;
  }
  if (meant.empty()) meant = closest(section, paths);
  raise<RecipeError>("--help-recipe: the name of a section or key is expected; got {}{}",
                     in_quotes(section),
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

}  // namespace obelisk
