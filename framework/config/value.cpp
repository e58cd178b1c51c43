#include "framework/config/value.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <limits>

#include "framework/config/options.pb.h"
#include "framework/config/schema.h"
#include "framework/config/text.h"

namespace obelisk {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

std::string range_problem(const FieldDescriptor& field, const std::string& text) {
  return fmt::format("must be {}; got {}", range_text(field), text);
}

std::string set_integer(Message& message, const FieldDescriptor& field, const Scalar& scalar) {
  const Parsed<int64_t> parsed = parse_integer(scalar);
  if (!parsed.value) return parsed.problem;
  const int64_t value = *parsed.value;
  if (!in_range(field, static_cast<double>(value))) return range_problem(field, scalar.text);
  if (field.type() == FieldDescriptor::TYPE_INT64) {
    message.GetReflection()->SetInt64(&message, &field, value);
    return "";
  }
  using Limits = std::numeric_limits<int32_t>;
  if (value > Limits::max()) {
    return fmt::format("must be at most {}; got {}", Limits::max(), value);
  }
  if (value < Limits::min()) {
    return fmt::format("must be at least {}; got {}", Limits::min(), value);
  }
  message.GetReflection()->SetInt32(&message, &field, static_cast<int32_t>(value));
  return "";
}

std::string set_number(Message& message, const FieldDescriptor& field, const Scalar& scalar) {
  const Parsed<double> parsed = parse_number(scalar);
  if (!parsed.value) return parsed.problem;
  if (!in_range(field, *parsed.value)) return range_problem(field, scalar.text);
  message.GetReflection()->SetDouble(&message, &field, *parsed.value);
  return "";
}

std::string set_bool(Message& message, const FieldDescriptor& field, const Scalar& scalar) {
  const Parsed<bool> parsed = parse_bool(scalar);
  if (!parsed.value) return parsed.problem;
  message.GetReflection()->SetBool(&message, &field, *parsed.value);
  return "";
}

std::string set_text(Message& message, const FieldDescriptor& field, const Scalar& scalar) {
  const Parsed<std::string> parsed = parse_text(scalar);
  if (!parsed.value) return parsed.problem;
  if (parsed.value->empty() && rules_of(field).required()) return "must not be empty";
  message.GetReflection()->SetString(&message, &field, *parsed.value);
  return "";
}

std::string set_enum(Message& message, const FieldDescriptor& field, const Scalar& scalar) {
  const EnumDescriptor& type = *field.enum_type();
  for (int i = 0; i < type.value_count(); ++i) {
    if (spelling(*type.value(i)) != scalar.text) continue;
    message.GetReflection()->SetEnum(&message, &field, type.value(i));
    return "";
  }
  const std::string meant = closest(scalar.text, spellings(field));
  return fmt::format("{}; got {}{}", type_rule(field), in_quotes(scalar.text),
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

// Letters, digits and a few signs that mean nothing to YAML.
bool needs_no_quotes(const std::string& text) {
  if (!is_plainly_text(text)) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (char c : text) {
    const bool harmless =
        is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
    if (!harmless && c != '-') return false;
  }
  return is_letter(text[0]) || text[0] == '/';
}

std::string yaml_text(const std::string& text) {
  if (needs_no_quotes(text)) return text;
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

std::string set_field(Message& message, const FieldDescriptor& field, const Scalar& scalar) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_BOOL:
      return set_bool(message, field, scalar);
    case FieldDescriptor::TYPE_DOUBLE:
      return set_number(message, field, scalar);
    case FieldDescriptor::TYPE_STRING:
      return set_text(message, field, scalar);
    case FieldDescriptor::TYPE_ENUM:
      return set_enum(message, field, scalar);
    default:
      return set_integer(message, field, scalar);
  }
}

std::string type_rule(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_BOOL:
      return "must be true or false";
    case FieldDescriptor::TYPE_DOUBLE:
      return "must be a number";
    case FieldDescriptor::TYPE_STRING:
      return "must be text";
    case FieldDescriptor::TYPE_ENUM:
      return "must be " + word_list(spellings(field), "or");
    default:
      return "must be an integer";
  }
}

std::string field_yaml(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& get = *message.GetReflection();
  switch (field.type()) {
    case FieldDescriptor::TYPE_BOOL:
      return get.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::TYPE_DOUBLE:
      return fmt::format("{}", get.GetDouble(message, &field));
    case FieldDescriptor::TYPE_STRING:
      return yaml_text(get.GetString(message, &field));
    case FieldDescriptor::TYPE_ENUM:
      return spelling(*get.GetEnum(message, &field));
    case FieldDescriptor::TYPE_INT32:
      return fmt::format("{}", get.GetInt32(message, &field));
    default:
      return fmt::format("{}", get.GetInt64(message, &field));
  }
}

}  // namespace obelisk
