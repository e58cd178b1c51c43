#include "ops/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/elementwise/elementwise.h"
#include "tests/ops/golden.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class OptimizerOps : public ::testing::Test {
 protected:
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

TEST_F(OptimizerOps, ANormThatIsNotFiniteStaysSo) {
  const Tensor x = zeros({100000}, DType::F32);
  x.data<float>()[77777] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ops::squared_norm(x).item<double>()));
  EXPECT_TRUE(std::isnan(ops::clip_factor(ops::squared_norm(x), 1.0).item<double>()));
  x.data<float>()[77777] = 3e30f;  // its square overflows f32, not f64
  EXPECT_NEAR(ops::squared_norm(x).item<double>() / 9e60, 1.0, 1e-6);
}

TEST_F(OptimizerOps, SaysWhatDoesNotFit) {
  const Tensor x = zeros({4}, DType::F32), y = zeros({5}, DType::F32);
  const Tensor clip = full({}, DType::F64, 1.0), rates = full({2}, DType::F64, 1.0);
  EXPECT_ERROR(
      ops::adamw(x, x, x, y, clip, rates, {}), ShapeError,
      "adamw: param, m, v and grad must have the same shape; got param f32 [4], m f32 [4], v "
      "f32 [4], grad f32 [5], clip f64 [], rates f64 [2], copy absent, {beta1=0.9, beta2=0.999, "
      "epsilon=1e-08, weight_decay=0}");
  EXPECT_ERROR(
      ops::adamw(x, x, x, x, clip, rates, {}, zeros({4}, DType::F32)), ShapeError,
      "adamw: copy must be bf16 and have the shape of param; got param f32 [4], m f32 [4], v f32 "
      "[4], grad f32 [4], clip f64 [], rates f64 [2], copy f32 [4], {beta1=0.9, beta2=0.999, "
      "epsilon=1e-08, weight_decay=0}");
  EXPECT_THROW(ops::adamw(x, x, x, x, clip, rates, {}, zeros({5}, DType::BF16)), ShapeError);
  EXPECT_ERROR(ops::clip_factor(x, 1.0), ShapeError,
               "clip_factor: norm_sq must be an f64 scalar; got norm_sq f32 [4], {max_norm=1}");
  EXPECT_THROW(ops::adamw(x, x, x, x, x, rates, {}), ShapeError);
  EXPECT_THROW(ops::adamw(x, x, x, x, clip, clip, {}), ShapeError);
  EXPECT_THROW(ops::adamw(x, x, x, zeros({4}, DType::F64), clip, rates, {}), ShapeError);
}

// Ten steps of torch.optim.AdamW over a vector, each with its own gradient and learning rate.
TEST_F(OptimizerOps, AdamWEqualsPyTorch) {
  for (const std::string& name : GoldenCase::names("adamw"))
    for (DType dtype : {DType::F32, DType::F64}) {
      const GoldenCase golden(name);
      const Tensor param = golden.input("weight", dtype);
      const Tensor grads = golden.input("gradients", dtype);
      const Tensor rates = golden.input("lr", DType::F64);
      const int64_t n = param.numel();
      const Tensor m = zeros({n}, dtype), v = zeros({n}, dtype);
      // What each step leaves, a row a step.
      const Tensor params = zeros(grads.shape(), dtype), means = zeros(grads.shape(), dtype);
      const Tensor squares = zeros(grads.shape(), dtype);
      auto row = [n](const Tensor& table, int64_t step) { return table.alias({n}, {1}, step * n); };
      for (int64_t step = 0; step < rates.numel(); ++step) {
        const Tensor rate = full({2}, DType::F64, static_cast<double>(step + 1));
        rate.data<double>()[0] = rates.data<double>()[step];
        ops::adamw(param, m, v, row(grads, step), full({}, DType::F64, 1.0), rate,
                   {.beta1 = golden.number("beta1"),
                    .beta2 = golden.number("beta2"),
                    .epsilon = golden.number("eps"),
                    .weight_decay = golden.number("weight_decay")});
        ops::accumulate(row(params, step), param);
        ops::accumulate(row(means, step), m);
        ops::accumulate(row(squares, step), v);
      }
      golden.expect_output("weight", params);
      golden.expect_output("m", means);
      golden.expect_output("v", squares);
    }
}

TEST_F(OptimizerOps, ClippingEqualsPyTorch) {
  for (const std::string& name : GoldenCase::names("clip_grad_norm"))
    for (DType dtype : {DType::F32, DType::F64}) {
      const GoldenCase golden(name);
      const char* const tensors[] = {"a", "b", "c"};
      Tensor norm_sq = zeros({}, DType::F64);
      for (const char* tensor : tensors)
        ops::accumulate(norm_sq, ops::squared_norm(golden.input(tensor, dtype)));
      golden.expect_output("norm", ops::sqrt(norm_sq));
      const double factor = ops::clip_factor(norm_sq, golden.number("max_norm")).item<double>();
      for (const char* tensor : tensors)
        golden.expect_output(tensor, ops::scale(golden.input(tensor, dtype), factor));
    }
}

}  // namespace
}  // namespace obelisk
