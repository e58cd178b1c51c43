#include "framework/graph/constant_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace obelisk {
namespace {

// The type whose numbers stand for a dtype's elements.
template <typename F>
void visit_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64:
      return f.template operator()<double>();
    case DType::F32:
      return f.template operator()<float>();
    case DType::BF16:
    case DType::F16:
      return f.template operator()<uint16_t>();
    case DType::I64:
      return f.template operator()<int64_t>();
    case DType::I32:
      return f.template operator()<int32_t>();
    case DType::U8:
      return f.template operator()<uint8_t>();
  }
}

}  // namespace

std::string print_constant(const Tensor& tensor) {
  std::string text;
  visit_element(tensor.dtype(), [&]<typename T>() {
    const T* values = static_cast<const T*>(tensor.raw_data());
    for (int64_t i = 0; i < tensor.numel(); ++i)
      text += fmt::format("{}{}", i > 0 ? " " : "", values[i]);
  });
  return text;
}

Tensor read_constant(std::string_view text, DType dtype, const DimShape& dims) {
  constexpr int64_t kMostElements = 4096;
  const auto refuse = [&] {
    raise<ValueError>("constant: must be {} numbers; got '{}'", to_string(product(dims)), text);
  };
  if (!is_numeric(dims) || product(dims).number() > kMostElements) refuse();
  Tensor tensor = empty(to_numbers(dims), dtype);
  visit_element(dtype, [&]<typename T>() {
    T* values = static_cast<T*>(tensor.raw_data());
    const char* at = text.data();
    const char* const end = at + text.size();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      if (i > 0 && (at == end || *at++ != ' ')) refuse();
      const auto [next, error] = std::from_chars(at, end, values[i]);
      if (error != std::errc()) refuse();
      at = next;
    }
    if (at != end) refuse();
  });
  return tensor;
}

}  // namespace obelisk
