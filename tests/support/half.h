// IEEE half precision to double, for reading stored weights.
#pragma once

#include <cmath>
#include <cstdint>

namespace obelisk {

inline double half_to_double(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const double mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half >> 15 != 0 ? -magnitude : magnitude;
}

}  // namespace obelisk
