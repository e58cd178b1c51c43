// A protobuf message as a recipe schema: its keys, and what their options say (options.proto).
//
// A message field is a section, any other field a key with a value. Paths join names with dots
// ("train.steps"). Field types are bool, int32, int64, double, string, enum and message, none of
// them repeated: check_schema throws Bug for anything else, and for a field without help or an enum
// value without spelling.
#pragma once

#include <string>
#include <vector>

namespace google::protobuf {
class Descriptor;
class EnumValueDescriptor;
class FieldDescriptor;
}  // namespace google::protobuf

namespace obelisk {

namespace recipe {
class Rules;
}

struct SchemaKey {
  std::string path;
  std::string section;  // path without the last name, "" at the top level
  const google::protobuf::FieldDescriptor* field;
};

void check_schema(const google::protobuf::Descriptor& schema);

// Every section and key, a section before its keys, in the order of the schema.
std::vector<SchemaKey> schema_keys(const google::protobuf::Descriptor& schema);

const recipe::Rules& rules_of(const google::protobuf::FieldDescriptor& field);
bool is_section(const google::protobuf::FieldDescriptor& field);
// The field of that name, or null.
const google::protobuf::FieldDescriptor* find_key(const google::protobuf::Descriptor& section,
                                                  const std::string& name);
std::vector<std::string> key_names(const google::protobuf::Descriptor& section);

// How YAML writes an enum value, and all spellings of a field's enum.
const std::string& spelling(const google::protobuf::EnumValueDescriptor& value);
std::vector<std::string> spellings(const google::protobuf::FieldDescriptor& field);

// "integer", "number", "true or false", "text", or the spellings joined with " | ".
std::string type_text(const google::protobuf::FieldDescriptor& field);
// "at least 1", "above 0", "in [0, 1)"; "" when every value will do.
std::string range_text(const google::protobuf::FieldDescriptor& field);
bool in_range(const google::protobuf::FieldDescriptor& field, double value);

}  // namespace obelisk
