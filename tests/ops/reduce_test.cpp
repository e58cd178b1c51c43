#include "ops/reduce/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class Reduce : public ::testing::Test {
 protected:
  ExecContext context_{ExecOptions{}};
  ExecScope scope_{context_};
};

Tensor doubles(std::vector<double> numbers, const Shape& shape) {
  return from_values<double>(std::span<const double>(numbers), shape);
}

TEST_F(Reduce, DimsAndKeepdim) {
  const Tensor x = doubles({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(ops::sum(x).shape(), Shape{});
  EXPECT_EQ(ops::sum(x).item<double>(), 21);
  EXPECT_EQ(ops::mean(x).item<double>(), 3.5);
  EXPECT_EQ(ops::max(x).item<double>(), 6);
  EXPECT_EQ(ops::sum(x, bit(0)).shape(), Shape{3});
  EXPECT_EQ(ops::sum(x, bit(0)).data<double>()[2], 9);
  EXPECT_EQ(ops::mean(x, bit(1), true).shape(), (Shape{2, 1}));
  EXPECT_EQ(ops::mean(x, bit(1), true).data<double>()[1], 5);
}

TEST_F(Reduce, NothingGivesZero) {
  const Tensor x = zeros({3, 0}, DType::F32);
  for (const Tensor& y : {ops::sum(x, bit(1)), ops::mean(x, bit(1)), ops::max(x, bit(1))})
    for (int i = 0; i < 3; ++i) EXPECT_EQ(y.data<float>()[i], 0);
}

TEST_F(Reduce, NanAndInfinity) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (int64_t position = 0; position < 41; ++position) {
    Tensor x = full({41}, DType::F64, 2);
    x.data<double>()[position] = nan;
    x.data<double>()[(position + 7) % 41] = inf;
    EXPECT_TRUE(std::isnan(ops::max(x).item<double>())) << position;
    EXPECT_TRUE(std::isnan(ops::sum(x).item<double>())) << position;
    EXPECT_EQ(ops::argmax(x).item<int64_t>(), position);
  }
  const Tensor low = full({19}, DType::F32, -inf);
  EXPECT_EQ(ops::max(low).item<float>(), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(ops::argmax(low).item<int64_t>(), 0);
}

TEST_F(Reduce, NanSurvivesEveryColumnPosition) {
  for (int64_t row = 0; row < 21; ++row) {
    Tensor x = full({21, 11}, DType::F32, 1);
    x.data<float>()[row * 11 + 10] = std::numeric_limits<float>::quiet_NaN();
    const Tensor y = ops::max(x, bit(0));
    EXPECT_TRUE(std::isnan(y.data<float>()[10])) << row;
    EXPECT_EQ(y.data<float>()[9], 1);
  }
}

// The error of a plain loop over n equal numbers grows with n: 0.1f added ten million times drifts
// by percents. In blocks it stays at the rounding of a few numbers.
TEST_F(Reduce, ErrorDoesNotGrowWithLength) {
  constexpr int64_t kCount = 10'000'000;
  const Tensor x = full({kCount}, DType::F32, 0.1);
  const double exact = static_cast<double>(0.1f) * kCount;
  EXPECT_NEAR(ops::sum(x).item<float>(), exact, exact * 1e-6);
  const Tensor columns = x.alias({kCount / 5, 5}, {5, 1}, 0);
  const Tensor y = ops::sum(columns, bit(0));
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(y.data<float>()[i], exact / 5, exact / 5 * 1e-6);
}

TEST_F(Reduce, SameBitsForAnyNumberOfThreads) {
  const Philox random(3, 4, 5);
  Tensor x = empty({3, 90'001}, DType::F32);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = random.normal(i);
  const Tensor wide = x.alias({90'001, 3}, {3, 1}, 0);
  std::vector<float> first;
  for (int threads : {1, 2, 3, 5}) {
    ExecOptions options;
    options.num_threads = threads;
    ExecContext context(options);
    ExecScope scope(context);
    std::vector<float> results{ops::sum(x).item<float>()};
    for (const Tensor& y : {ops::sum(x, bit(1)), ops::mean(wide, bit(0))})
      results.insert(results.end(), y.data<float>(), y.data<float>() + 3);
    if (first.empty()) first = results;
    EXPECT_EQ(results, first) << threads << " threads";
  }
}

TEST_F(Reduce, MaxSharesItsGradientAmongEquals) {
  Tensor x = doubles({1, 4, 4, 2, 4, 0}, {2, 3});
  x.set_requires_grad(true);
  ops::backward(ops::max(x), full({}, DType::F64, 6));
  const double expected[] = {0, 2, 2, 0, 2, 0};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(x.grad().data<double>()[i], expected[i]);
}

TEST_F(Reduce, Messages) {
  const Tensor x = zeros({2, 3}, DType::F32);
  EXPECT_ERROR(ops::sum(x, bit(2)), ShapeError,
               "sum: dims must be a set of dims of x; got x f32 [2, 3], {dims=4, keepdim=false, "
               "wide=false}");
  EXPECT_ERROR(apply(ops::kShare, {zeros({2}, DType::F64)}, ops::CountAttrs{-1}), ShapeError,
               "share: count must not be negative; got x f64 [2], {count=-1}");
  EXPECT_ERROR(
      ops::mean(zeros({2}, DType::I64)), ShapeError,
      "mean: dtypes must be f32, bf16 or f64; got x i64 [2], {dims=1, keepdim=false, wide=false}");
  EXPECT_ERROR(ops::argmax(zeros({2, 0}, DType::F32)), ShapeError,
               "argmax: last dim of x must not be empty; got x f32 [2, 0]");
  EXPECT_ERROR(ops::argmax(zeros({}, DType::F32)), ShapeError,
               "argmax: x must have a last dim; got x f32 []");
  EXPECT_ERROR(apply(ops::kMaxBackward, {x, zeros({2}, DType::F32), zeros({3}, DType::F32)},
                     ops::ReduceAttrs{2, false}),
               ShapeError,
               "max_backward: y and dy must have the same shape; got x f32 [2, 3], y f32 [2], dy "
               "f32 [3], {dims=2, keepdim=false, wide=false}");
}

}  // namespace
}  // namespace obelisk
