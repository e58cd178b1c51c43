#include "framework/op/attrs.h"

#include <fmt/format.h>

namespace obelisk::attrs_detail {

std::string print(bool value) { return value ? "true" : "false"; }
std::string print(int64_t value) { return std::to_string(value); }
std::string print(double value) { return fmt::format("{}", value); }
std::string print(DType value) { return std::string(to_string(value)); }
std::string print(const DimShape& value) { return to_string(value); }
std::string print(const Shape& value) { return to_string(value); }

uint64_t hash_text(const std::string& text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace obelisk::attrs_detail
