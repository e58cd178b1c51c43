// Conversion of one element between any two dtypes; the meaning of ops::cast.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "framework/tensor/dtype.h"

namespace obelisk::ops {

// To nearest even, with subnormals and overflow to infinity.
inline Float16 float16_from(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  constexpr uint32_t kInfinity = 0x7F800000u;
  if (magnitude > kInfinity)
    return {static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x01FFu))};
  // Half of the last place above 65504, the largest finite number.
  if (magnitude >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};
  uint32_t half;
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 1/2 leaves multiples of 2^-24, the subnormal unit, in the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  } else {
    // Exponent bias 127 -> 15, then ten of the 23 mantissa bits.
    const uint32_t rebased = magnitude - 0x38000000u;
    half = (rebased + 0x0FFFu + (rebased >> 13 & 1u)) >> 13;
  }
  return {static_cast<uint16_t>(sign | half)};
}
inline float float_from(Float16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t exponent = x.bits >> 10 & 0x1Fu;
  const uint32_t mantissa = x.bits & 0x03FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t rebased = exponent == 31 ? 0x7F800000u : (exponent + 112) << 23;
  const uint32_t quiet = exponent == 31 && mantissa != 0 ? 0x00400000u : 0u;
  return std::bit_cast<float>(sign | rebased | quiet | mantissa << 13);
}

// f64 -> f32 rounded to odd: rounding the result once more to fewer bits is then as exact as
// rounding x.
inline float float_rounded_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if (x != x || static_cast<double>(nearest) == x || (bits & 1u) != 0) return nearest;
  const bool too_large = std::abs(static_cast<double>(nearest)) > std::abs(x);
  return std::bit_cast<float>(too_large ? bits - 1 : bits + 1);
}

// Truncation with saturation; NaN is 0. The dtypes' ends are powers of two, exact in double.
template <typename To>
To integer_from(double x) {
  using Limits = std::numeric_limits<To>;
  if (x != x) return 0;
  if (x <= static_cast<double>(Limits::min())) return Limits::min();
  if (x >= std::ldexp(1.0, Limits::digits)) return Limits::max();
  return static_cast<To>(x);
}

template <typename To>
To integer_from(int64_t x) {
  using Limits = std::numeric_limits<To>;
  if (x < static_cast<int64_t>(Limits::min())) return Limits::min();
  if (x > static_cast<int64_t>(Limits::max())) return Limits::max();
  return static_cast<To>(x);
}

template <typename To, typename From>
To convert_element(From x) {
  constexpr bool kNarrowFrom = std::is_same_v<From, BFloat16> || std::is_same_v<From, Float16>;
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kNarrowFrom) {
    return convert_element<To>(float_from(x));
  } else if constexpr (std::is_same_v<To, BFloat16> || std::is_same_v<To, Float16>) {
    float rounded;
    if constexpr (std::is_same_v<From, float>) {
      rounded = x;
    } else {
      rounded = float_rounded_to_odd(static_cast<double>(x));
    }
    if constexpr (std::is_same_v<To, BFloat16>) {
      return bfloat16_from(rounded);
    } else {
      return float16_from(rounded);
    }
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_floating_point_v<From>) {
    return integer_from<To>(static_cast<double>(x));
  } else {
    return integer_from<To>(static_cast<int64_t>(x));
  }
}

// Calls f.template operator()<T>() with the element type of a dtype.
template <typename F>
void visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
#define OBELISK_VISIT_DTYPE(name, text, type) \
  case DType::name:                           \
    return f.template operator()<type>();
    OBELISK_DTYPES(OBELISK_VISIT_DTYPE)
#undef OBELISK_VISIT_DTYPE
  }
}

}  // namespace obelisk::ops
