#include "ops/gelu/gelu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "tests/ops/golden.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

using ops::GeluForm;

class GeluTest : public ::testing::Test {
 protected:
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

TEST_F(GeluTest, EqualsPyTorch) {
  for (const std::string& name : GoldenCase::names("gelu"))
    for (DType dtype : {DType::F32, DType::F64}) {
      const GoldenCase golden(name);
      Tensor x = golden.input("x", dtype);
      x.set_requires_grad(true);
      const Tensor y = ops::gelu(x, golden.text("form") == "erf" ? GeluForm::Erf : GeluForm::Tanh);
      golden.expect_output("y", y);
      ops::backward(ops::sum(ops::multiply(y, golden.cotangent("y", dtype))));
      golden.expect_gradient("x", x.grad());
    }
}

struct Exact {
  long double value, slope;
};
Exact exact_gelu(long double x, GeluForm form) {
  if (form == GeluForm::Erf) {
    const long double p = 0.5L * std::erfc(-x * std::sqrt(0.5L));
    const long double bell = std::exp(-0.5L * x * x) / std::sqrt(2.0L * std::acos(-1.0L));
    return {x * p, p + x * bell};
  }
  const long double c = std::sqrt(2.0L / std::acos(-1.0L));
  const long double s = 1.0L / (1.0L + std::exp(-2.0L * c * (x + 0.044715L * x * x * x)));
  return {x * s, s + x * s * (1.0L - s) * 2.0L * c * (1.0L + 3.0L * 0.044715L * x * x)};
}

// Largest error of value and slope on a fine grid, relative to max(1, |x|).
template <typename T>
double largest_error(GeluForm form) {
  constexpr int64_t kPoints = 40001;
  std::vector<T> grid;
  for (int64_t i = 0; i < kPoints; ++i) grid.push_back(static_cast<T>(-40.0 + 0.002 * i));
  const Tensor x = from_values<T>(std::span<const T>(grid), {kPoints});
  const Tensor one = full({kPoints}, DTypeOf<T>::value, 1.0);
  const Tensor y = ops::gelu(x, form);
  const Tensor dx = apply(ops::kGeluBackward, {x, one}, ops::GeluAttrs{form})[0];
  long double worst = 0;
  for (int64_t i = 0; i < kPoints; ++i) {
    const Exact want = exact_gelu(grid[i], form);
    const long double scale = std::max(1.0L, std::abs(static_cast<long double>(grid[i])));
    worst = std::max({worst, std::abs(y.data<T>()[i] - want.value) / scale,
                      std::abs(dx.data<T>()[i] - want.slope) / scale});
  }
  return static_cast<double>(worst);
}

TEST_F(GeluTest, IsAccurateOnAFineGrid) {
  for (GeluForm form : {GeluForm::Erf, GeluForm::Tanh}) {
    EXPECT_LT(largest_error<float>(form), 3e-7) << to_string(form);
    EXPECT_LT(largest_error<double>(form), 1e-15) << to_string(form);
  }
}

template <typename T>
void check_special_values(GeluForm form) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> numbers = {kInf, -kInf, kNan, T{0}, -T{0}, T{30}, T{-30}, T{1e30}, T{-1e30}};
  const auto n = static_cast<int64_t>(numbers.size());
  const Tensor x = from_values<T>(std::span<const T>(numbers), {n});
  const Tensor one = full({n}, DTypeOf<T>::value, 1.0);
  const Tensor result = ops::gelu(x, form);
  const Tensor slopes = apply(ops::kGeluBackward, {x, one}, ops::GeluAttrs{form})[0];
  const T* const y = result.data<T>();
  const T* const slope = slopes.data<T>();
  EXPECT_EQ(y[0], kInf);
  EXPECT_TRUE(std::isnan(y[1]));  // -inf * 0
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_TRUE(std::isnan(slope[2]));
  EXPECT_EQ(y[3], T{0});
  EXPECT_FALSE(std::signbit(y[3]));
  EXPECT_TRUE(y[4] == T{0} && std::signbit(y[4]));
  EXPECT_EQ(slope[3], T{0.5});
  EXPECT_EQ(y[5], T{30});
  EXPECT_EQ(slope[5], T{1});
  EXPECT_TRUE(std::abs(y[6]) < T{1e-30} && std::signbit(y[6]));
  EXPECT_NEAR(slope[6], T{0}, T{1e-30});
  EXPECT_EQ(y[7], T{1e30});
  EXPECT_EQ(slope[7], T{1});
  EXPECT_TRUE(y[8] == T{0} && std::signbit(y[8]));
  EXPECT_EQ(slope[8], T{0});
}

TEST_F(GeluTest, SpecialValues) {
  for (GeluForm form : {GeluForm::Erf, GeluForm::Tanh}) {
    SCOPED_TRACE(to_string(form));
    check_special_values<float>(form);
    check_special_values<double>(form);
  }
}

TEST_F(GeluTest, Errors) {
  EXPECT_ERROR(ops::gelu(zeros({3}, DType::I64)), ShapeError,
               "gelu: dtypes must be f32, bf16 or f64; got x i64 [3], {form=erf}");
  EXPECT_ERROR(apply(ops::kGeluBackward, {zeros({3}, DType::F32), zeros({4}, DType::F32)},
                     ops::GeluAttrs{GeluForm::Tanh}),
               ShapeError,
               "gelu_backward: x and dy must have the same shape; got x f32 [3], dy f32 [4], "
               "{form=tanh}");
  EXPECT_ERROR(
      apply(ops::kGeluBackward, {zeros({3}, DType::F32), zeros({3}, DType::F64)}, ops::GeluAttrs{}),
      ShapeError, "gelu_backward: dtypes must be alike; got x f32 [3], dy f64 [3], {form=erf}");
}

}  // namespace
}  // namespace obelisk
