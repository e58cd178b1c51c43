// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers:
// as easy as 1, 2, 3; SC 2011). Pure integer and fma arithmetic, so CPU and CUDA give the same
// bits.
//
// A draw is a function of (seed, stream, step, element). A stream is the hash of a module path and
// a role ("dropout", "init"); the element is logical (global sample, position, channel), so the
// same draw comes out under any sharding, thread count or order. Element e takes word e mod 4 of
// block e / 4.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace obelisk {

using PhiloxBlock = std::array<uint32_t, 4>;

constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// A well-mixing 64-bit permutation (the finaliser of splitmix64, Steele et al. 2014).
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// FNV-1a of "path:role", mixed.
constexpr uint64_t random_stream(std::string_view path, std::string_view role) {
  uint64_t hash = 0xCBF29CE484222325u;
  auto feed = [&](std::string_view text) {
    for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  };
  feed(path);
  feed(":");
  feed(role);
  return mix64(hash);
}

// One (seed, stream, step): hands out the word of any element.
class Philox {
 public:
  constexpr Philox(uint64_t seed, uint64_t stream, uint64_t step)
      : key_(split(mix64(seed + 0x9E3779B97F4A7C15u) ^ stream)), step_(split(step)) {}

  constexpr PhiloxBlock block(uint64_t index) const {
    const auto words = split(index);
    return philox4x32({words[0], words[1], step_[0], step_[1]}, key_);
  }
  constexpr uint32_t bits(uint64_t element) const { return block(element / 4)[element % 4]; }
  float uniform(uint64_t element) const;
  float normal(uint64_t element) const;

 private:
  static constexpr std::array<uint32_t, 2> split(uint64_t x) {
    return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
  }
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> step_;
};

// [0, 1) in steps of 2^-24.
constexpr float uniform_from_bits(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Natural logarithm of a positive normal float to about 1 ulp, from bit operations and fma alone,
// since libm and CUDA differ. x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s =
// (m - 1) / (m + 1), as a series in s^2.
inline float portable_log(float x) {
  const uint32_t shifted = std::bit_cast<uint32_t>(x) - 0x3F3504F3u;  // bits of sqrt(1/2)
  const int exponent = static_cast<int32_t>(shifted) >> 23;
  const float m = std::bit_cast<float>((shifted & 0x007FFFFFu) + 0x3F3504F3u);
  const float s = (m - 1.0f) / (m + 1.0f);
  const float z = s * s;
  float p = 2.0f / 11.0f;
  p = std::fmaf(p, z, 2.0f / 9.0f);
  p = std::fmaf(p, z, 2.0f / 7.0f);
  p = std::fmaf(p, z, 2.0f / 5.0f);
  p = std::fmaf(p, z, 2.0f / 3.0f);
  p = std::fmaf(p, z, 2.0f);
  return std::fmaf(static_cast<float>(exponent), 0.693147182f, s * p);
}

// A standard normal from 32 random bits by inversion: sqrt(2) * erfinv(x) with x uniform in (-1,
// 1), erfinv by the single precision polynomials of M. Giles, Approximating the erfinv function
// (GPU Computing Gems, 2011). |result| < 5.42.
inline float normal_from_bits(uint32_t bits) {
  const auto k = static_cast<int32_t>(bits >> 8);
  const float x = static_cast<float>(2 * k + 1 - (1 << 24)) * 0x1p-24f;
  float w = -portable_log((1.0f - x) * (1.0f + x));
  float p;
  if (w < 5.0f) {
    w -= 2.5f;
    p = 2.81022636e-08f;
    p = std::fmaf(p, w, 3.43273939e-07f);
    p = std::fmaf(p, w, -3.5233877e-06f);
    p = std::fmaf(p, w, -4.39150654e-06f);
    p = std::fmaf(p, w, 0.00021858087f);
    p = std::fmaf(p, w, -0.00125372503f);
    p = std::fmaf(p, w, -0.00417768164f);
    p = std::fmaf(p, w, 0.246640727f);
    p = std::fmaf(p, w, 1.50140941f);
  } else {
    w = std::sqrt(w) - 3.0f;
    p = -0.000200214257f;
    p = std::fmaf(p, w, 0.000100950558f);
    p = std::fmaf(p, w, 0.00134934322f);
    p = std::fmaf(p, w, -0.00367342844f);
    p = std::fmaf(p, w, 0.00573950773f);
    p = std::fmaf(p, w, -0.0076224613f);
    p = std::fmaf(p, w, 0.00943887047f);
    p = std::fmaf(p, w, 1.00167406f);
    p = std::fmaf(p, w, 2.83297682f);
  }
  return 1.41421354f * (p * x);
}

inline float Philox::uniform(uint64_t element) const { return uniform_from_bits(bits(element)); }
inline float Philox::normal(uint64_t element) const { return normal_from_bits(bits(element)); }

}  // namespace obelisk
