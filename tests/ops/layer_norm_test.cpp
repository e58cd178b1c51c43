#include "ops/layer_norm/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/autograd/node.h"
#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "tests/ops/golden.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class LayerNormTest : public ::testing::Test {
 protected:
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

Tensor require_grad(Tensor tensor) {
  if (tensor.defined()) tensor.set_requires_grad(true);
  return tensor;
}

void check_gradient(const GoldenCase& golden, const char* name, const Tensor& tensor) {
  if (tensor.defined()) golden.expect_gradient(name, tensor.grad());
}

TEST_F(LayerNormTest, EqualsPyTorch) {
  for (const std::string& name : GoldenCase::names("layer_norm"))
    for (DType dtype : {DType::F32, DType::F64}) {
      const GoldenCase golden(name);
      const Tensor x = require_grad(golden.input("x", dtype));
      const Tensor w = require_grad(golden.input("weight", dtype));
      const Tensor b = require_grad(golden.input("bias", dtype));
      const Tensor y = ops::layer_norm(x, w, b, golden.number("eps"));
      golden.expect_output("y", y);
      ops::backward(ops::sum(ops::multiply(y, golden.cotangent("y", dtype))));
      check_gradient(golden, "x", x);
      check_gradient(golden, "weight", w);
      check_gradient(golden, "bias", b);
    }
}

TEST_F(LayerNormTest, FusedAdditionEqualsPyTorch) {
  for (const std::string& name : GoldenCase::names("residual_layer_norm"))
    for (DType dtype : {DType::F32, DType::F64}) {
      const GoldenCase golden(name);
      const Tensor x = require_grad(golden.input("x", dtype));
      const Tensor residual = require_grad(golden.input("residual", dtype));
      const Tensor w = require_grad(golden.input("weight", dtype));
      const Tensor b = require_grad(golden.input("bias", dtype));
      const ops::NormedSum out = ops::add_layer_norm(x, residual, w, b, golden.number("eps"));
      golden.expect_output("y", out.normed);
      golden.expect_output("sum", out.sum);
      const Tensor normed = ops::multiply(out.normed, golden.cotangent("y", dtype));
      const Tensor sum = ops::multiply(out.sum, golden.cotangent("sum", dtype));
      ops::backward(ops::add(ops::sum(normed), ops::sum(sum)));
      check_gradient(golden, "x", x);
      check_gradient(golden, "residual", residual);
      check_gradient(golden, "weight", w);
      check_gradient(golden, "bias", b);
    }
}

// Rows of +1 and -1 around a mean that a sum in f32 cannot hold exactly.
TEST_F(LayerNormTest, LargeMeanKeepsTheVariance) {
  constexpr int64_t kWidth = 1000;
  const Tensor x = empty({1, kWidth}, DType::F32);
  for (int64_t i = 0; i < kWidth; ++i)
    x.data<float>()[i] = 1000001.0f + (i % 2 == 0 ? 1.0f : -1.0f);
  const Tensor one = full({kWidth}, DType::F32, 1.0);
  const TensorList out = apply(ops::kLayerNorm, {x, one, Tensor()}, ops::LayerNormAttrs{0.0});
  EXPECT_EQ(out[1].item<float>(), 1000001.0f);
  EXPECT_NEAR(out[2].item<float>(), 1.0f, 1e-6);
  for (int64_t i = 0; i < kWidth; ++i)
    ASSERT_NEAR(out[0].data<float>()[i], i % 2 == 0 ? 1.0f : -1.0f, 1e-5) << i;
}

TEST_F(LayerNormTest, FusedAdditionGivesTheBitsOfItsParts) {
  const Philox random(3, random_stream("layer_norm", "fused"), 0);
  const Shape shape = {37, 65};
  const Tensor x = empty(shape, DType::F32), residual = empty(shape, DType::F32);
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.data<float>()[i] = random.normal(i);
    residual.data<float>()[i] = random.normal(100000 + i);
  }
  const Tensor w = full({65}, DType::F32, 1.5), b = full({65}, DType::F32, 0.25);
  const ops::NormedSum fused = ops::add_layer_norm(x, residual, w, b);
  const Tensor sum = ops::add(x, residual);
  const Tensor normed = ops::layer_norm(sum, w, b);
  for (int64_t i = 0; i < x.numel(); ++i) {
    ASSERT_EQ(fused.sum.data<float>()[i], sum.data<float>()[i]);
    ASSERT_EQ(fused.normed.data<float>()[i], normed.data<float>()[i]);
  }
}

TEST_F(LayerNormTest, BackwardKeepsTheSumAlone) {
  Tensor x = zeros({8, 32}, DType::F32), w = full({32}, DType::F32, 1.0);
  x.set_requires_grad(true);
  const ops::NormedSum out = ops::add_layer_norm(x, zeros({8, 32}, DType::F32), w, Tensor());
  const auto saved = saved_bytes_by_op(out.normed);
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].first, "add_layer_norm");
  EXPECT_EQ(saved[0].second, 4 * (8 * 32 + 32 + 8 + 8));
}

TEST_F(LayerNormTest, NanStaysInItsRow) {
  const Tensor x = zeros({2, 9}, DType::F64);
  x.data<double>()[3] = std::numeric_limits<double>::quiet_NaN();
  const Tensor one = full({9}, DType::F64, 1.0);
  const TensorList out = apply(ops::kLayerNorm, {x, one, one}, ops::LayerNormAttrs{});
  EXPECT_TRUE(std::isnan(out[1].data<double>()[0]));
  EXPECT_TRUE(std::isnan(out[2].data<double>()[0]));
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_TRUE(std::isnan(out[0].data<double>()[i]));
    EXPECT_EQ(out[0].data<double>()[9 + i], 1.0);
  }
}

TEST_F(LayerNormTest, StatisticsHaveNoGradient) {
  Tensor x = zeros({2, 3}, DType::F32);
  x.set_requires_grad(true);
  const Tensor w = full({3}, DType::F32, 1.0);
  const TensorList alone = apply(ops::kLayerNorm, {x, w, Tensor()}, ops::LayerNormAttrs{});
  EXPECT_ERROR(ops::backward(ops::sum(alone[1])), Bug,
               "bug: layer_norm: mean and rstd have no gradient; they are kept for backward only "
               "(backward of layer_norm)");
  const TensorList fused = apply(ops::kAddLayerNorm, {x, x, w, Tensor()}, ops::LayerNormAttrs{});
  EXPECT_ERROR(ops::backward(ops::sum(fused[3])), Bug,
               "bug: add_layer_norm: mean and rstd have no gradient; they are kept for backward "
               "only (backward of add_layer_norm)");
}

TEST_F(LayerNormTest, Errors) {
  const auto f32 = [](Shape shape) { return zeros(shape, DType::F32); };
  EXPECT_ERROR(ops::layer_norm(f32({}), f32({1}), Tensor()), ShapeError,
               "layer_norm: x must have at least one dim; got x f32 [], w f32 [1], b absent, "
               "{eps=1e-05}");
  EXPECT_ERROR(
      ops::layer_norm(f32({2, 3}), f32({2}), Tensor()), ShapeError,
      "layer_norm: w must be 1-D and as long as x's last dim; got x f32 [2, 3], w f32 [2], "
      "b absent, {eps=1e-05}");
  EXPECT_ERROR(
      ops::layer_norm(f32({2, 3}), f32({3}), f32({1, 3})), ShapeError,
      "layer_norm: b must be 1-D and as long as x's last dim; got x f32 [2, 3], w f32 [3], "
      "b f32 [1, 3], {eps=1e-05}");
  EXPECT_ERROR(ops::layer_norm(f32({2, 3}), zeros({3}, DType::F64), Tensor()), ShapeError,
               "layer_norm: dtypes must be alike; got x f32 [2, 3], w f64 [3], b absent, "
               "{eps=1e-05}");
  EXPECT_ERROR(ops::layer_norm(f32({2, 3}), f32({3}), Tensor(), -1.0), ShapeError,
               "layer_norm: eps must not be negative; got x f32 [2, 3], w f32 [3], b absent, "
               "{eps=-1}");
  EXPECT_ERROR(
      ops::add_layer_norm(f32({2, 3}), f32({3}), f32({3}), Tensor()), ShapeError,
      "add_layer_norm: x and residual must have the same shape; got x f32 [2, 3], residual "
      "f32 [3], w f32 [3], b absent, {eps=1e-05}");
}

TEST_F(LayerNormTest, BackwardErrors) {
  const auto f32 = [](Shape shape) { return zeros(shape, DType::F32); };
  const auto run = [&](Shape dy, Shape w, Shape mean) {
    apply(ops::kLayerNormBackward, {f32(dy), Tensor(), f32({2, 3}), f32(w), f32(mean), f32({2})},
          ops::LayerNormBackwardAttrs{false});
  };
  EXPECT_ERROR(run({3, 2}, {3}, {2}), ShapeError,
               "layer_norm_backward: dy, dsum and x must have the same shape; got dy f32 [3, 2], "
               "dsum absent, x f32 [2, 3], w f32 [3], mean f32 [2], rstd f32 [2], "
               "{with_bias=false}");
  const Tensor bf16 = zeros({2, 3}, DType::BF16), rows = zeros({2}, DType::BF16);
  EXPECT_ERROR(
      apply(ops::kLayerNormBackward, {bf16, Tensor(), bf16, zeros({3}, DType::BF16), rows, rows},
            ops::LayerNormBackwardAttrs{false}),
      ShapeError,
      "layer_norm_backward: sums must be of the operands' dtype, or f32 where that is bf16; got dy "
      "bf16 [2, 3], dsum absent, x bf16 [2, 3], w bf16 [3], mean bf16 [2], rstd bf16 [2], "
      "{with_bias=false}");
  EXPECT_ERROR(run({2, 3}, {2}, {2}), ShapeError,
               "layer_norm_backward: w must be 1-D and as long as x's last dim; got dy f32 [2, 3], "
               "dsum absent, x f32 [2, 3], w f32 [2], mean f32 [2], rstd f32 [2], "
               "{with_bias=false}");
  EXPECT_ERROR(run({2, 3}, {3}, {3}), ShapeError,
               "layer_norm_backward: mean and rstd must have x's leading dims; got dy f32 [2, 3], "
               "dsum absent, x f32 [2, 3], w f32 [3], mean f32 [3], rstd f32 [2], "
               "{with_bias=false}");
}

}  // namespace
}  // namespace obelisk
