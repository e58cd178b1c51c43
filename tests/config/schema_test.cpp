#include "framework/config/schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <set>

#include "framework/base/error.h"
#include "framework/config/options.pb.h"
#include "recipes/recipe.pb.h"

namespace obelisk {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorProto;

// What check_schema throws for a message M with one field 'f'.
std::string schema_error(const FieldDescriptorProto& field) {
  FileDescriptorProto file;
  file.set_name("m.proto");
  auto* message = file.add_message_type();
  message->set_name("M");
  *message->add_field() = field;
  auto* color = file.add_enum_type();
  color->set_name("Color");
  auto* red = color->add_value();
  red->set_name("RED");
  red->set_number(0);
  DescriptorPool pool(DescriptorPool::generated_pool());
  const auto* built = pool.BuildFile(file);
  try {
    check_schema(*built->FindMessageTypeByName("M"));
  } catch (const Bug& bug) {
    return bug.what();
  }
  return "";
}

FieldDescriptorProto field_of(FieldDescriptorProto::Type type) {
  FieldDescriptorProto field;
  field.set_name("f");
  field.set_number(1);
  field.set_type(type);
  field.set_label(FieldDescriptorProto::LABEL_OPTIONAL);
  field.mutable_options()->MutableExtension(recipe::rules)->set_help("help");
  return field;
}

TEST(Schema, SaysWhatASchemaLacks) {
  EXPECT_EQ(schema_error(field_of(FieldDescriptorProto::TYPE_DOUBLE)), "");

  EXPECT_EQ(schema_error(field_of(FieldDescriptorProto::TYPE_BYTES)),
            "bug: schema M: the type of 'f' has no YAML form");
  FieldDescriptorProto repeated = field_of(FieldDescriptorProto::TYPE_INT64);
  repeated.set_label(FieldDescriptorProto::LABEL_REPEATED);
  EXPECT_EQ(schema_error(repeated), "bug: schema M: the type of 'f' has no YAML form");

  FieldDescriptorProto helpless = field_of(FieldDescriptorProto::TYPE_BOOL);
  helpless.mutable_options()->MutableExtension(recipe::rules)->clear_help();
  EXPECT_EQ(schema_error(helpless), "bug: schema M: 'f' has no help");

  FieldDescriptorProto color = field_of(FieldDescriptorProto::TYPE_ENUM);
  color.set_type_name(".Color");
  EXPECT_EQ(schema_error(color), "bug: schema M: a value of 'f' has no spelling");
}

TEST(Schema, RangesReadAsWords) {
  const auto range = [](auto set) {
    FileDescriptorProto file;
    file.set_name("m.proto");
    auto* message = file.add_message_type();
    message->set_name("M");
    *message->add_field() = field_of(FieldDescriptorProto::TYPE_DOUBLE);
    set(*message->mutable_field(0)->mutable_options()->MutableExtension(recipe::rules));
    DescriptorPool pool(DescriptorPool::generated_pool());
    return range_text(*pool.BuildFile(file)->message_type(0)->field(0));
  };
  EXPECT_EQ(range([](auto&) {}), "");
  EXPECT_EQ(range([](auto& r) { r.set_min(1); }), "at least 1");
  EXPECT_EQ(range([](auto& r) { r.set_above(0); }), "above 0");
  EXPECT_EQ(range([](auto& r) { r.set_max(2.5); }), "at most 2.5");
  EXPECT_EQ(range([](auto& r) { r.set_below(1); }), "below 1");
  EXPECT_EQ(range([](auto& r) { r.set_min(0), r.set_below(1); }), "in [0, 1)");
  EXPECT_EQ(range([](auto& r) { r.set_above(0), r.set_max(1); }), "in (0, 1]");
}

TEST(Schema, TheRecipeIsComplete) {
  const auto& schema = *recipe::Recipe::descriptor();
  EXPECT_NO_THROW(check_schema(schema));
  for (const SchemaKey& key : schema_keys(schema)) {
    if (is_section(*key.field)) continue;
    // A required key without a default, any other with one, or text, whose natural default is "".
    const bool text = key.field->type() == google::protobuf::FieldDescriptor::TYPE_STRING;
    if (rules_of(*key.field).required()) {
      EXPECT_FALSE(key.field->has_default_value()) << key.path;
    } else {
      EXPECT_TRUE(key.field->has_default_value() || text) << key.path;
    }
  }
}

TEST(Schema, SpellingsAreUniqueAndLowerCase) {
  for (const SchemaKey& key : schema_keys(*recipe::Recipe::descriptor())) {
    if (key.field->type() != google::protobuf::FieldDescriptor::TYPE_ENUM) continue;
    const std::vector<std::string> words = spellings(*key.field);
    EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), words.size()) << key.path;
    for (const std::string& word : words) {
      EXPECT_EQ(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
          << word;
    }
  }
}

}  // namespace
}  // namespace obelisk
