// One field of a message from a scalar, and back.
#pragma once

#include <string>

#include "framework/config/scalar.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace obelisk {

// Sets the field and returns "", or leaves it and returns what is wrong: "must be ...; got ...;
// remedy".
std::string set_field(google::protobuf::Message& message,
                      const google::protobuf::FieldDescriptor& field, const Scalar& scalar);

// "must be an integer", for values that are no scalar at all.
std::string type_rule(const google::protobuf::FieldDescriptor& field);

// The field's value, or its default when it is not set, as YAML that set_field reads back exactly.
std::string field_yaml(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field);

}  // namespace obelisk
