// Rounding to 16 bits against exact arithmetic, saturation, NaN.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "ops/layout/layout.h"
#include "ops/reduce/reduce.h"
#include "tests/support/half.h"

namespace obelisk {
namespace {

class Cast : public ::testing::Test {
 protected:
  ExecContext context_{ExecOptions{}};
  ExecScope scope_{context_};
};

double value_of(Float16 x) {
  if ((x.bits & 0x7FFF) == 0x7C00) return x.bits >> 15 != 0 ? -HUGE_VAL : HUGE_VAL;
  return half_to_double(x.bits);
}
double value_of(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
bool is_nan(Float16 x) { return (x.bits & 0x7FFF) > 0x7C00; }
bool is_nan(BFloat16 x) { return (x.bits & 0x7FFF) > 0x7F80; }

template <typename T>
Tensor all_patterns() {
  Tensor x = empty({65536}, DTypeOf<T>::value);
  for (int i = 0; i < 65536; ++i) x.data<T>()[i].bits = static_cast<uint16_t>(i);
  return x;
}

// Every 16-bit pattern, widened and narrowed again, is itself; NaN comes back as a NaN.
template <typename T>
void expect_round_trip(DType through) {
  const Tensor x = all_patterns<T>();
  const Tensor wide = ops::cast(x, through);
  const Tensor back = ops::cast(wide, DTypeOf<T>::value);
  for (int i = 0; i < 65536; ++i) {
    const T before = x.data<T>()[i], after = back.data<T>()[i];
    if (is_nan(before)) {
      EXPECT_TRUE(is_nan(after)) << i;
      EXPECT_EQ(before.bits >> 15, after.bits >> 15) << i;
      continue;
    }
    EXPECT_EQ(before.bits, after.bits) << i;
    const double value =
        through == DType::F32 ? static_cast<double>(wide.data<float>()[i]) : wide.data<double>()[i];
    EXPECT_EQ(value, value_of(before)) << i;
  }
}

TEST_F(Cast, SixteenBitsRoundTrip) {
  expect_round_trip<BFloat16>(DType::F32);
  expect_round_trip<BFloat16>(DType::F64);
  expect_round_trip<Float16>(DType::F32);
  expect_round_trip<Float16>(DType::F64);
}

// The nearest of the pattern found and its neighbours; on a tie the even one.
template <typename T>
void expect_nearest_even(double x, T rounded) {
  auto magnitude = [](uint16_t bits) { return std::abs(value_of(T{bits})); };
  const auto bits = static_cast<uint16_t>(rounded.bits & 0x7FFF);
  const double target = std::abs(x);
  if (std::isinf(magnitude(bits))) {
    // Half a unit above the largest finite number and more.
    const double largest = magnitude(bits - 1), unit = largest - magnitude(bits - 2);
    EXPECT_GE(target, largest + unit / 2) << x;
    return;
  }
  const double distance = std::abs(magnitude(bits) - target);
  for (int step : {-1, 1}) {
    if (bits == 0 && step < 0) continue;
    const auto neighbour = static_cast<uint16_t>(bits + step);
    double other = magnitude(neighbour);
    // As if the exponent went on: the distance that decides about overflow.
    if (std::isinf(other)) other = 2 * magnitude(bits) - magnitude(bits - 1);
    const double other_distance = std::abs(other - target);
    EXPECT_LE(distance, other_distance) << x;
    if (distance == other_distance) {
      EXPECT_EQ(bits % 2, 0) << x;
    }
  }
  EXPECT_EQ(rounded.bits >> 15 != 0, std::signbit(x)) << x;
}

// Random numbers over all exponents, ties of both formats, and numbers a hair beside ties that only
// f64 can tell from them.
std::vector<double> hard_numbers() {
  std::vector<double> list;
  const Philox random(1, 2, 3);
  for (uint64_t i = 0; i < 20000; ++i) {
    const double mantissa = 1.0 + random.uniform(3 * i);
    const int exponent = static_cast<int>(random.bits(3 * i + 1) % 270) - 140;
    const double sign = random.bits(3 * i + 2) % 2 == 0 ? 1 : -1;
    list.push_back(sign * std::ldexp(mantissa, exponent % 44));
    list.push_back(sign * std::ldexp(mantissa, exponent));
    const double tie = std::ldexp(static_cast<double>(random.bits(3 * i) % 8192) + 0.5,
                                  static_cast<int>(i % 48) - 30);
    for (double nudge : {0.0, 1e-13, -1e-13}) list.push_back(sign * tie * (1 + nudge));
  }
  for (double x : {65504.0, 65519.99, 65520.0, 65520.01, 3.3895e38, 3.396e38, 3.5e38, 1e300})
    list.push_back(x);
  return list;
}

template <typename From, typename To>
void expect_narrowing() {
  Tensor x = empty({static_cast<int64_t>(hard_numbers().size())}, DTypeOf<From>::value);
  const std::vector<double> numbers = hard_numbers();
  for (size_t i = 0; i < numbers.size(); ++i) x.data<From>()[i] = static_cast<From>(numbers[i]);
  const Tensor y = ops::cast(x, DTypeOf<To>::value);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (std::isinf(x.data<From>()[i])) continue;
    expect_nearest_even(static_cast<double>(x.data<From>()[i]), y.data<To>()[i]);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_F(Cast, SixteenBitsRoundToNearestEven) {
  expect_narrowing<float, BFloat16>();
  expect_narrowing<double, BFloat16>();
  expect_narrowing<float, Float16>();
  expect_narrowing<double, Float16>();
}

TEST_F(Cast, ToIntegersTruncatesAndSaturates) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> numbers{2.9, -2.9, 255.9, 256, -1, 3e9, -3e9, 1e30, -inf, inf, nan};
  const Tensor x = from_values<double>(std::span<const double>(numbers), {11});
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
  constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
  const int64_t as_i64[] = {2,      -2,     255,    256, -1, 3'000'000'000, -3'000'000'000,
                            kMax64, kMin64, kMax64, 0};
  const int32_t as_i32[] = {2, -2, 255, 256, -1, kMax32, kMin32, kMax32, kMin32, kMax32, 0};
  const uint8_t as_u8[] = {2, 0, 255, 255, 0, 255, 0, 255, 0, 255, 0};
  for (const Tensor& source : {x, ops::cast(x, DType::F32)}) {
    const Tensor i64 = ops::cast(source, DType::I64), i32 = ops::cast(source, DType::I32);
    const Tensor u8 = ops::cast(source, DType::U8);
    for (int i = 0; i < 11; ++i) {
      EXPECT_EQ(i64.data<int64_t>()[i], as_i64[i]) << numbers[i];
      EXPECT_EQ(i32.data<int32_t>()[i], as_i32[i]) << numbers[i];
      EXPECT_EQ(u8.data<uint8_t>()[i], as_u8[i]) << numbers[i];
    }
  }
}

TEST_F(Cast, AmongIntegersSaturates) {
  const std::vector<int64_t> numbers{-5, 7, 300, int64_t{1} << 40};
  const Tensor x = from_values<int64_t>(std::span<const int64_t>(numbers), {4});
  const uint8_t expected[] = {0, 7, 255, 255};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ops::cast(x, DType::U8).data<uint8_t>()[i], expected[i]);
  EXPECT_EQ(ops::cast(x, DType::I32).data<int32_t>()[3], std::numeric_limits<int32_t>::max());
  EXPECT_EQ(ops::cast(ops::cast(x, DType::U8), DType::I64).data<int64_t>()[2], 255);
  EXPECT_EQ(ops::cast(x, DType::F32).data<float>()[3], 0x1p40f);
}

TEST_F(Cast, SameDtypeIsTheSameTensor) {
  const Tensor x = zeros({3}, DType::F32);
  EXPECT_EQ(ops::cast(x, DType::F32).storage(), x.storage());
}

TEST_F(Cast, GradientsAreCastBack) {
  Tensor x = full({3}, DType::F64, 0.1);
  x.set_requires_grad(true);
  const Tensor narrow = ops::cast(x, DType::F32);
  ops::backward(ops::sum(ops::square(narrow)));
  ASSERT_EQ(x.grad().dtype(), DType::F64);
  EXPECT_EQ(x.grad().data<double>()[1], static_cast<double>(2 * 0.1f));
}

TEST_F(Cast, LongRangesUseTheVectorLoopsAndTheirTails) {
  for (int64_t n = 0; n < 40; ++n) {
    Tensor x = empty({n}, DType::F32);
    for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(i) - 7.5f;
    for (DType dtype : {DType::F64, DType::BF16, DType::F16}) {
      const Tensor back = ops::cast(ops::cast(x, dtype), DType::F32);
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(back.data<float>()[i], x.data<float>()[i]);
    }
  }
}

}  // namespace
}  // namespace obelisk
