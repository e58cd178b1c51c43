#include "framework/op/attrs.h"

#include <fmt/format.h>

#include <charconv>

namespace obelisk::attrs_detail {

std::string print(bool value) { return value ? "true" : "false"; }
std::string print(int64_t value) { return std::to_string(value); }
std::string print(double value) { return fmt::format("{}", value); }
std::string print(DType value) { return std::string(to_string(value)); }
std::string print(Dim value) { return to_string(value); }
std::string print(const DimShape& value) { return to_string(value); }
std::string print(const Shape& value) { return to_string(value); }

void refuse(std::string_view what, std::string_view text) {
  raise<ValueError>("attributes: must be {}; got '{}'", what, text);
}

namespace {

template <typename T>
void read_number(std::string_view text, T& value, std::string_view what) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(what, text);
}

template <typename List>
void read_list(std::string_view text, SymbolTable& symbols, List& list) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') refuse("a list", text);
  list = List();
  std::string_view rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    const size_t comma = rest.find(", ");
    std::remove_cvref_t<decltype(list[0])> item = 0;
    read(rest.substr(0, comma), symbols, item);
    list.push_back(item);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 2);
    if (rest.empty()) refuse("a list", text);
  }
}

}  // namespace

void read(std::string_view text, SymbolTable&, bool& value) {
  if (text != "true" && text != "false") refuse("true or false", text);
  value = text == "true";
}
void read(std::string_view text, SymbolTable&, int64_t& value) {
  read_number(text, value, "an integer");
}
void read(std::string_view text, SymbolTable&, int& value) {
  read_number(text, value, "an integer");
}
void read(std::string_view text, SymbolTable&, double& value) {
  read_number(text, value, "a number");
}
void read(std::string_view text, SymbolTable&, DType& value) {
  for (int i = 0; i <= static_cast<int>(DType::U8); ++i) {
    value = static_cast<DType>(i);
    if (to_string(value) == text) return;
  }
  refuse("a dtype", text);
}
void read(std::string_view text, SymbolTable& symbols, Dim& value) { value = symbols.parse(text); }
void read(std::string_view text, SymbolTable& symbols, DimShape& value) {
  read_list(text, symbols, value);
}
void read(std::string_view text, SymbolTable& symbols, Shape& value) {
  read_list(text, symbols, value);
}

FieldReader::FieldReader(std::string_view text) : whole_(text), rest_(text) {
  if (text.size() < 2 || text.front() != '{' || text.back() != '}')
    refuse("fields in braces", text);
  rest_ = text.substr(1, text.size() - 2);
}

std::string_view FieldReader::next(std::string_view field) {
  if (!rest_.starts_with(field) || rest_.substr(field.size(), 1) != "=")
    refuse(fmt::format("fields with '{}' next", field), whole_);
  rest_.remove_prefix(field.size() + 1);
  size_t end = 0;
  for (int depth = 0; end < rest_.size(); ++end) {
    depth += (rest_[end] == '[') - (rest_[end] == ']');
    if (depth == 0 && rest_.substr(end, 2) == ", ") break;
  }
  const std::string_view value = rest_.substr(0, end);
  rest_.remove_prefix(std::min(rest_.size(), end + 2));
  return value;
}

void FieldReader::finish() const {
  if (!rest_.empty()) refuse("the op's own fields", whole_);
}

uint64_t hash_text(const std::string& text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace obelisk::attrs_detail
