// Element types. One list gives name, size and C++ type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "framework/base/error.h"

namespace obelisk {

// 16-bit floats are storage formats on the host: arithmetic converts to f32 first.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

//        name  text    C++ type
#define OBELISK_DTYPES(X)   \
  X(F64, "f64", double)     \
  X(F32, "f32", float)      \
  X(BF16, "bf16", BFloat16) \
  X(F16, "f16", Float16)    \
  X(I64, "i64", int64_t)    \
  X(I32, "i32", int32_t)    \
  X(U8, "u8", uint8_t)

enum class DType : uint8_t {
#define OBELISK_DTYPE_ENUM(name, text, type) name,
  OBELISK_DTYPES(OBELISK_DTYPE_ENUM)
#undef OBELISK_DTYPE_ENUM
};

constexpr std::string_view to_string(DType dtype) {
  switch (dtype) {
#define OBELISK_DTYPE_TEXT(name, text, type) \
  case DType::name:                          \
    return text;
    OBELISK_DTYPES(OBELISK_DTYPE_TEXT)
#undef OBELISK_DTYPE_TEXT
  }
  return "?";
}

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
#define OBELISK_DTYPE_SIZE(name, text, type) \
  case DType::name:                          \
    return sizeof(type);
    OBELISK_DTYPES(OBELISK_DTYPE_SIZE)
#undef OBELISK_DTYPE_SIZE
  }
  return 0;
}

constexpr bool is_float(DType dtype) { return dtype <= DType::F16; }

// In which sums over elements are kept: statistics, losses, and gradients of leaves.
constexpr DType sum_dtype(DType dtype) {
  return dtype == DType::BF16 || dtype == DType::F16 ? DType::F32 : dtype;
}

template <typename T>
struct DTypeOf;
#define OBELISK_DTYPE_OF(name, text, type)      \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
OBELISK_DTYPES(OBELISK_DTYPE_OF)
#undef OBELISK_DTYPE_OF

// To nearest even. A NaN keeps its sign and upper payload bits and is made quiet.
inline BFloat16 bfloat16_from(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x0040u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16)};
}
inline float float_from(BFloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

// The type in which kernels compute on elements stored as T; sums of bf16 numbers are f32.
template <typename T>
using Compute = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
template <typename T>
Compute<T> widen(T x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return float_from(x);
  } else {
    return x;
  }
}
template <typename T>
T narrow(Compute<T> x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return bfloat16_from(x);
  } else {
    return x;
  }
}

// Calls f.template operator()<T>() with T = double, float or BFloat16; `place` names the op in the
// error.
template <typename F>
decltype(auto) visit_float(DType dtype, std::string_view place, F&& f) {
  if (dtype == DType::F32) return f.template operator()<float>();
  if (dtype == DType::BF16) return f.template operator()<BFloat16>();
  if (dtype == DType::F64) return f.template operator()<double>();
  raise<ShapeError>("{}: dtype must be f32, bf16 or f64; got {}; cast first", place,
                    to_string(dtype));
}

// The same for f32 and f64 alone: plain-loop references, and ops without a bf16 kernel.
template <typename F>
decltype(auto) visit_f32_f64(DType dtype, std::string_view place, F&& f) {
  if (dtype == DType::F32) return f.template operator()<float>();
  if (dtype == DType::F64) return f.template operator()<double>();
  raise<ShapeError>("{}: dtype must be f32 or f64; got {}; cast first", place, to_string(dtype));
}

}  // namespace obelisk
