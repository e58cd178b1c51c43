#include "framework/config/schema.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>

#include "framework/base/error.h"
#include "framework/config/options.pb.h"
#include "framework/config/text.h"

namespace obelisk {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

namespace {

void add_keys(const Descriptor& schema, const std::string& section, std::vector<SchemaKey>& keys) {
  for (int i = 0; i < schema.field_count(); ++i) {
    const FieldDescriptor* field = schema.field(i);
    const std::string path = section.empty() ? field->name() : section + "." + field->name();
    keys.push_back({path, section, field});
    if (is_section(*field)) add_keys(*field->message_type(), path, keys);
  }
}

bool is_supported(const FieldDescriptor& field) {
  if (field.is_repeated()) return false;
  switch (field.type()) {
    case FieldDescriptor::TYPE_BOOL:
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_ENUM:
    case FieldDescriptor::TYPE_MESSAGE:
      return true;
    default:
      return false;
  }
}

}  // namespace

void check_schema(const Descriptor& schema) {
  for (const SchemaKey& key : schema_keys(schema)) {
    OBELISK_CHECK(is_supported(*key.field), Bug,
                  "bug: schema {}: the type of '{}' has no YAML form", schema.full_name(),
                  key.path);
    OBELISK_CHECK(!rules_of(*key.field).help().empty(), Bug, "bug: schema {}: '{}' has no help",
                  schema.full_name(), key.path);
    if (key.field->type() != FieldDescriptor::TYPE_ENUM) continue;
    for (const std::string& word : spellings(*key.field)) {
      OBELISK_CHECK(!word.empty(), Bug, "bug: schema {}: a value of '{}' has no spelling",
                    schema.full_name(), key.path);
    }
  }
}

std::vector<SchemaKey> schema_keys(const Descriptor& schema) {
  std::vector<SchemaKey> keys;
  add_keys(schema, "", keys);
  return keys;
}

const recipe::Rules& rules_of(const FieldDescriptor& field) {
  return field.options().GetExtension(recipe::rules);
}

bool is_section(const FieldDescriptor& field) {
  return field.type() == FieldDescriptor::TYPE_MESSAGE;
}

const FieldDescriptor* find_key(const Descriptor& section, const std::string& name) {
  return section.FindFieldByName(name);
}

std::vector<std::string> key_names(const Descriptor& section) {
  std::vector<std::string> names;
  for (int i = 0; i < section.field_count(); ++i) names.push_back(section.field(i)->name());
  return names;
}

const std::string& spelling(const EnumValueDescriptor& value) {
  return value.options().GetExtension(recipe::spelling);
}

std::vector<std::string> spellings(const FieldDescriptor& field) {
  std::vector<std::string> words;
  const EnumDescriptor& type = *field.enum_type();
  for (int i = 0; i < type.value_count(); ++i) words.push_back(spelling(*type.value(i)));
  return words;
}

std::string type_text(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_BOOL:
      return "true or false";
    case FieldDescriptor::TYPE_DOUBLE:
      return "number";
    case FieldDescriptor::TYPE_STRING:
      return "text";
    case FieldDescriptor::TYPE_ENUM: {
      std::string out;
      for (const std::string& word : spellings(field)) out += (out.empty() ? "" : " | ") + word;
      return out;
    }
    case FieldDescriptor::TYPE_MESSAGE:
      return "section";
    default:
      return "integer";
  }
}

std::string range_text(const FieldDescriptor& field) {
  const recipe::Rules& rules = rules_of(field);
  const bool low = rules.has_min() || rules.has_above();
  const bool high = rules.has_max() || rules.has_below();
  const double low_value = rules.has_above() ? rules.above() : rules.min();
  const double high_value = rules.has_below() ? rules.below() : rules.max();
  if (low && high) {
    return fmt::format("in {}{}, {}{}", rules.has_above() ? '(' : '[', low_value, high_value,
                       rules.has_below() ? ')' : ']');
  }
  if (low) return fmt::format("{} {}", rules.has_above() ? "above" : "at least", low_value);
  if (high) return fmt::format("{} {}", rules.has_below() ? "below" : "at most", high_value);
  return "";
}

bool in_range(const FieldDescriptor& field, double value) {
  const recipe::Rules& rules = rules_of(field);
  return !(rules.has_min() && value < rules.min()) && !(rules.has_max() && value > rules.max()) &&
         !(rules.has_above() && value <= rules.above()) &&
         !(rules.has_below() && value >= rules.below());
}

}  // namespace obelisk
