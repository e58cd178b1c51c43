#include "framework/autograd/recompute.h"

#include <gtest/gtest.h>

#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gelu/gelu.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class RecomputeTest : public ::testing::Test {
 protected:
  static Tensor leaf(double value, const Shape& shape = {4}) {
    Tensor x = full(shape, DType::F32, value);
    x.set_requires_grad(true);
    return x;
  }
  ExecContext context_;
  ExecScope scope_{context_};
};

// gelu(x) * x: its input arrives at two places.
struct Product : Segment {
  TensorList run_segment(std::span<const Tensor> inputs) const override {
    ++runs;
    return {ops::multiply(ops::gelu(inputs[0], ops::GeluForm::Erf), inputs[0])};
  }
  mutable int runs = 0;
};

TEST_F(RecomputeTest, SegmentsNestAndGiveTheSameGradients) {
  struct Twice : Segment {
    TensorList run_segment(std::span<const Tensor> inputs) const override {
      const Tensor once = recompute(inner, inputs)[0];
      return recompute(inner, {&once, 1});
    }
    Product inner;
  } twice;
  const Tensor x = leaf(0.7), y = leaf(0.7);
  ops::backward(ops::sum(recompute(twice, {&x, 1})[0]));
  EXPECT_EQ(twice.inner.runs, 2 + 2 + 2);  // forward, the outer one again, each inner one again
  const Tensor once = ops::multiply(ops::gelu(y, ops::GeluForm::Erf), y);
  ops::backward(ops::sum(ops::multiply(ops::gelu(once, ops::GeluForm::Erf), once)));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(x.grad().data<float>()[i], y.grad().data<float>()[i]);
}

TEST_F(RecomputeTest, RunsOnceWhereNoGradientIsWanted) {
  const Product product;
  const Tensor x = leaf(0.7);
  const NoGradScope no_grad;
  EXPECT_FALSE(recompute(product, {&x, 1})[0].requires_grad());
  EXPECT_EQ(product.runs, 1);
}

TEST_F(RecomputeTest, NeedsAnInputThatWantsAGradient) {
  const Product product;
  const Tensor x = full({4}, DType::F32, 1.0);
  EXPECT_ERROR(recompute(product, {&x, 1}), Bug,
               "bug: recompute of a segment none of whose inputs wants a gradient");
}

TEST_F(RecomputeTest, NestedBackwardOnlyInsideBackward) {
  const Tensor x = leaf(1.0);
  EXPECT_ERROR(run_nested_backward({&x, 1}, {&x, 1}), Bug,
               "bug: nested backward outside of backward");
}

// Dropping such a graph must not recurse once a layer.
TEST_F(RecomputeTest, DeepSelectiveGraphsAreFreedByALoop) {
  const SelectiveRecomputeScope selective(true);
  Tensor x = leaf(1.0);
  for (int i = 0; i < 50000; ++i) x = ops::multiply(ops::gelu(x, ops::GeluForm::Erf), x);
}

TEST_F(RecomputeTest, SelectiveNoticesChangesInPlace) {
  const SelectiveRecomputeScope selective(true);
  const Tensor x = leaf(0.5), w = leaf(2.0);
  const Tensor scaled = ops::multiply(x, w);
  const Tensor loss = ops::sum(ops::multiply(scaled, w));  // saves `scaled` by its producer
  {
    const NoGradScope no_grad;
    ops::accumulate(x.detach(), w.detach());
  }
  EXPECT_ERROR(ops::backward(loss), Bug,
               "bug: a tensor that multiply saved for backward was changed in place by accumulate");
}

}  // namespace
}  // namespace obelisk
