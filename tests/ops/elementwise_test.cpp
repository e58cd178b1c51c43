// What the harness does not see: edges of the domains, accuracy over the whole line, messages.
#include "ops/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/autograd.h"
#include "ops/layout/layout.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Elementwise : public ::testing::Test {
 protected:
  ExecContext context_{ExecOptions{}};
  ExecScope scope_{context_};
};

template <typename T>
Tensor vector_of(const std::vector<double>& numbers) {
  std::vector<T> converted(numbers.begin(), numbers.end());
  return from_values<T>(std::span<const T>(converted), {static_cast<int64_t>(numbers.size())});
}

using UnaryFunction = Tensor (*)(const Tensor&);

template <typename T>
void expect_values(UnaryFunction function, const std::vector<double>& x,
                   const std::vector<double>& expected) {
  const Tensor y = function(vector_of<T>(x));
  for (size_t i = 0; i < x.size(); ++i) {
    const double actual = y.data<T>()[i];
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual)) << "at " << x[i] << ": " << actual;
    } else {
      EXPECT_EQ(actual, expected[i]) << "at " << x[i];
      EXPECT_EQ(std::signbit(actual), std::signbit(expected[i])) << "at " << x[i];
    }
  }
}
void expect_values(UnaryFunction function, const std::vector<double>& x,
                   const std::vector<double>& expected) {
  expect_values<float>(function, x, expected);
  expect_values<double>(function, x, expected);
}

TEST_F(Elementwise, EdgesOfTheDomains) {
  const std::vector<double> edges{-kInf, -1, -0.0, 0.0, 1, kInf, kNaN};
  expect_values(ops::exp, {-kInf, -1e30, -0.0, 0.0, 1e30, kInf, kNaN},
                {0, 0, 1, 1, kInf, kInf, kNaN});
  expect_values(ops::log, edges, {kNaN, kNaN, -kInf, -kInf, 0, kInf, kNaN});
  expect_values(ops::sqrt, edges, {kNaN, kNaN, -0.0, 0.0, 1, kInf, kNaN});
  expect_values(ops::rsqrt, edges, {kNaN, kNaN, -kInf, kInf, 1, 0, kNaN});
  expect_values(ops::reciprocal, edges, {-0.0, -1, -kInf, kInf, 1, 0, kNaN});
  expect_values(ops::tanh, {-kInf, -1e30, -40, -0.0, 0.0, 40, 1e30, kInf, kNaN},
                {-1, -1, -1, -0.0, 0.0, 1, 1, 1, kNaN});
  expect_values(ops::sigmoid, {-kInf, -1e30, -0.0, 0.0, 40, 1e30, kInf, kNaN},
                {0, 0, 0.5, 0.5, 1, 1, 1, kNaN});
  expect_values(ops::relu, edges, {0, 0, -0.0, 0, 1, kInf, kNaN});
  expect_values(ops::abs, edges, {kInf, 1, 0, 0, 1, kInf, kNaN});
  expect_values(ops::negate, edges, {kInf, 1, 0, -0.0, -1, -kInf, kNaN});
  expect_values(ops::square, edges, {kInf, 1, 0, 0, 1, kInf, kNaN});
}

// Distance in units of the last place of the exact result, over a dense sweep.
template <typename T>
double worst_ulp(UnaryFunction function, long double (*exact)(long double), double low, double high,
                 int steps) {
  std::vector<double> x;
  for (int i = 0; i <= steps; ++i)
    x.push_back(static_cast<T>(low + (high - low) * i / static_cast<double>(steps)));
  const Tensor y = function(vector_of<T>(x));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = exact(static_cast<long double>(x[i]));
    const T rounded = static_cast<T>(want);
    if (std::abs(rounded) < std::numeric_limits<T>::min()) continue;
    const long double ulp = std::nextafter(std::abs(rounded), static_cast<T>(kInf)) -
                            static_cast<long double>(std::abs(rounded));
    worst = std::max(worst, static_cast<double>(
                                std::abs(static_cast<long double>(y.data<T>()[i]) - want) / ulp));
  }
  return worst;
}

TEST_F(Elementwise, TranscendentalsAreAccurate) {
  constexpr int kSteps = 20000;
  auto exp = [](long double x) { return std::exp(x); };
  auto log = [](long double x) { return std::log(x); };
  auto tanh = [](long double x) { return std::tanh(x); };
  auto sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LE(worst_ulp<float>(ops::exp, exp, -87.3, 88.7, kSteps), 1.5);
  EXPECT_LE(worst_ulp<double>(ops::exp, exp, -708, 709.7, kSteps), 1.5);
  EXPECT_LE(worst_ulp<float>(ops::log, log, 1e-30, 4, kSteps), 4);
  EXPECT_LE(worst_ulp<double>(ops::log, log, 1e-30, 4, kSteps), 4);
  EXPECT_LE(worst_ulp<float>(ops::log, log, 1, 3e38, kSteps), 4);
  EXPECT_LE(worst_ulp<double>(ops::log, log, 1, 1e308, kSteps), 4);
  EXPECT_LE(worst_ulp<float>(ops::tanh, tanh, -20, 20, kSteps), 5);
  EXPECT_LE(worst_ulp<double>(ops::tanh, tanh, -20, 20, kSteps), 5);
  EXPECT_LE(worst_ulp<float>(ops::tanh, tanh, -0.01, 0.01, kSteps), 5);
  EXPECT_LE(worst_ulp<float>(ops::sigmoid, sigmoid, -87, 30, kSteps), 3);
  EXPECT_LE(worst_ulp<double>(ops::sigmoid, sigmoid, -700, 40, kSteps), 3);
}

TEST_F(Elementwise, BroadcastingByHand) {
  const Tensor a = from_values<double>(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor column = from_values<double>(std::vector<double>{10, 20}, {2, 1});
  const Tensor row = from_values<double>(std::vector<double>{7, 8, 9}, {3});
  const Tensor y = ops::subtract(ops::multiply(a, column), row);
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  const double expected[] = {3, 12, 21, 73, 92, 111};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y.data<double>()[i], expected[i]);
  EXPECT_EQ(ops::add(column, row).shape(), (Shape{2, 3}));
}

// One node may feed both operands; the leaf gets the sum of both gradients.
TEST_F(Elementwise, AnOperandUsedTwice) {
  Tensor x = from_values<double>(std::vector<double>{2, -3}, {2});
  x.set_requires_grad(true);
  const Tensor y = ops::scale(x, 3);
  ops::backward(ops::sum(ops::multiply(y, y)));
  EXPECT_EQ(x.grad().data<double>()[0], 36);
  EXPECT_EQ(x.grad().data<double>()[1], -54);
}

TEST_F(Elementwise, BackwardTakesASeed) {
  Tensor x = full({}, DType::F64, 5);
  x.set_requires_grad(true);
  ops::backward(ops::square(x), full({}, DType::F64, 0.25));
  EXPECT_EQ(x.grad().item<double>(), 2.5);
}

TEST_F(Elementwise, InPlaceOpsChangeOnlyTheirElements) {
  const Tensor buffer = full({3, 4}, DType::F32, 1);
  const Tensor middle = ops::slice(buffer, 1, 1, 3);
  ops::accumulate(middle, full({3, 2}, DType::F32, 5));
  ops::fill(ops::slice(buffer, 0, 2, 3), -1);
  const float expected[] = {1, 6, 6, 1, 1, 6, 6, 1, -1, -1, -1, -1};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(buffer.data<float>()[i], expected[i]);
}

TEST_F(Elementwise, Messages) {
  const Tensor a = zeros({2, 3}, DType::F32);
  EXPECT_ERROR(ops::add(a, zeros({2}, DType::F32)), ShapeError,
               "add: shapes must broadcast: dims equal, or one of them 1; got a f32 [2, 3], b f32 "
               "[2]");
  EXPECT_ERROR(ops::multiply(a, zeros({2, 3}, DType::F64)), ShapeError,
               "multiply: dtypes must be alike; got a f32 [2, 3], b f64 [2, 3]");
  EXPECT_ERROR(ops::exp(zeros({2}, DType::I64)), ShapeError,
               "exp: dtypes must be f32, bf16 or f64; got x i64 [2]");
  EXPECT_ERROR(ops::accumulate(a, zeros({3}, DType::F32)), ShapeError,
               "accumulate: destination and x must have the same shape; got destination f32 [2, "
               "3], x f32 [3]");
  EXPECT_ERROR(apply(ops::kReluBackward, {a, zeros({3}, DType::F32)}, NoAttrs{}), ShapeError,
               "relu_backward: kept and dy must have the same shape; got kept f32 [2, 3], dy f32 "
               "[3]");
  EXPECT_ERROR(ops::fill(zeros({2}, DType::I64), 1), ShapeError,
               "fill: dtypes must be f32, bf16 or f64; got destination i64 [2], {value=1}");
}

// Shape rules run on symbols: what is proven equal broadcasts, what is not is refused.
TEST_F(Elementwise, ShapesMayBeSymbols) {
  SymbolTable table;
  const Dim batch = table.symbol("B");
  auto infer = [](const DimShape& a, const DimShape& b) {
    SpecList outputs;
    const TensorSpec inputs[] = {{a, DType::F32}, {b, DType::F32}};
    ops::kAdd.infer({"add", ops::kAdd.input_names, inputs, NoAttrs{}, outputs});
    return outputs[0].shape;
  };
  EXPECT_EQ(infer({batch, 3}, {3}), (DimShape{batch, 3}));
  EXPECT_EQ(infer({batch, 1}, {batch, 5}), (DimShape{batch, 5}));
  EXPECT_EQ(infer({1}, {batch}), (DimShape{batch}));
  EXPECT_ERROR(infer({batch}, {4}), ShapeError,
               "add: shapes must broadcast: dims equal, or one of them 1; got a f32 [B], b f32 "
               "[4]");
}

}  // namespace
}  // namespace obelisk
