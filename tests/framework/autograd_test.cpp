#include "ops/autograd.h"

#include <gtest/gtest.h>

#include "framework/autograd/engine.h"
#include "framework/base/scope.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class Autograd : public ::testing::Test {
 protected:
  static Tensor leaf(double value) {
    Tensor x = full({}, DType::F64, value);
    x.set_requires_grad(true);
    return x;
  }
  ExecContext context_;
  ExecScope scope_{context_};
};

TEST_F(Autograd, AddsGradientsOfSharedUses) {
  const Tensor x = leaf(3.0);
  // y = x^2 + x * x + x
  ops::backward(ops::add(ops::add(ops::square(x), ops::multiply(x, x)), x));
  EXPECT_EQ(x.grad().item<double>(), 2 * 3.0 + 2 * 3.0 + 1);
}

TEST_F(Autograd, SharedGradientsAreNotChangedInPlace) {
  // add() hands the same gradient tensor to both operands; one of them then gets a second share.
  const Tensor a = leaf(2.0), b = leaf(5.0);
  const Tensor sum = ops::add(a, b);
  ops::backward(ops::add(sum, ops::scale(a, 10.0)));
  EXPECT_EQ(a.grad().item<double>(), 11.0);
  EXPECT_EQ(b.grad().item<double>(), 1.0);
}

TEST_F(Autograd, AccumulatesOverCalls) {
  const Tensor x = leaf(3.0);
  ops::backward(ops::scale(x, 2.0));
  ops::backward(ops::scale(x, 5.0));
  EXPECT_EQ(x.grad().item<double>(), 7.0);
}

TEST_F(Autograd, SeedScalesEverything) {
  const Tensor x = leaf(3.0);
  ops::backward(ops::square(x), full({}, DType::F64, 0.5));
  EXPECT_EQ(x.grad().item<double>(), 3.0);
}

TEST_F(Autograd, NoGradScopeRecordsNothing) {
  const Tensor x = leaf(3.0);
  NoGradScope no_grad;
  EXPECT_TRUE(ops::square(x).is_leaf());
  EXPECT_FALSE(ops::square(x).requires_grad());
}

TEST_F(Autograd, FreesSavedTensorsAfterUse) {
  const Tensor x = leaf(3.0);
  const Tensor y = ops::exp(ops::square(x));
  EXPECT_GT(saved_bytes_by_op(y).size(), 0u);
  ops::backward(y);
  EXPECT_EQ(saved_bytes_by_op(y).size(), 0u);
  EXPECT_ERROR(ops::backward(y), Bug,
               "bug: backward of exp ran already and freed its tensors; run forward again");
}

TEST_F(Autograd, SeesWritesToSavedTensors) {
  const Tensor x = leaf(3.0);
  const Tensor square = ops::square(x);
  const Tensor y = ops::multiply(square, square);
  {
    NoGradScope no_grad;
    ops::fill(square.detach(), 1.0);
  }
  EXPECT_ERROR(ops::backward(y), Bug,
               "bug: a tensor that multiply saved for backward was changed in place by fill");
}

TEST_F(Autograd, RefusesWritesToTensorsThatWantGradients) {
  const Tensor x = leaf(3.0);
  EXPECT_ERROR(ops::fill(x, 1.0), Bug,
               "bug: fill writes input 0 in place, which requires a gradient; open a NoGradScope");
}

TEST_F(Autograd, RefusesWhatIsNoRoot) {
  const Tensor x = leaf(3.0);
  Tensor vector = zeros({2}, DType::F64);
  vector.set_requires_grad(true);
  EXPECT_ERROR(ops::backward(ops::square(vector)), ShapeError,
               "backward: the root must be a scalar; got [2]; reduce it first");
  EXPECT_ERROR(ops::backward(x), Bug,
               "bug: backward from a tensor that no recorded op made; does an input require a "
               "gradient, and is no NoGradScope open?");
  EXPECT_ERROR(ops::backward(ops::square(x), zeros({2}, DType::F64)), ShapeError,
               "backward: the seed's shape must equal the root's; got [2] and []");
  Tensor y = ops::square(x);
  EXPECT_ERROR(y.set_requires_grad(true), Bug,
               "bug: requires_grad is set on leaves only, not on an op's output");
}

TEST_F(Autograd, ErrorsNameTheModule) {
  const std::string path = "layers.3.attn.qkv";
  PathScope scope(path);
  try {
    ops::add(zeros({2}, DType::F64), zeros({3}, DType::F64));
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with(" (layers.3.attn.qkv)")) << error.what();
  }
}

// Depth must not cost stack: neither in backward, nor when a graph is dropped unused.
TEST_F(Autograd, DeepGraphsNeedNoStack) {
  constexpr int kDepth = 200000;
  const Tensor x = leaf(1.0);
  {
    Tensor y = x;
    for (int i = 0; i < kDepth; ++i) y = ops::add_scalar(y, 1.0);
  }
  Tensor y = x;
  for (int i = 0; i < kDepth; ++i) y = ops::add_scalar(y, 1.0);
  ops::backward(y);
  EXPECT_EQ(x.grad().item<double>(), 1.0);
}

}  // namespace
}  // namespace obelisk
