#include "ops/layout/layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/autograd.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class Layout : public ::testing::Test {
 protected:
  ExecContext context_{ExecOptions{}};
  ExecScope scope_{context_};
};

// 0, 1, 2, ... in a shape.
Tensor iota(const Shape& shape) {
  Tensor x = empty(shape, DType::F64);
  std::iota(x.data<double>(), x.data<double>() + x.numel(), 0.0);
  return x;
}

std::vector<double> numbers(const Tensor& x) {
  return {x.data<double>(), x.data<double>() + x.numel()};
}

TEST_F(Layout, ViewsShareStorage) {
  const Tensor x = iota({4, 6});
  const Tensor reshaped = ops::reshape(x, {2, -1, 3});
  EXPECT_EQ(reshaped.shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(reshaped.storage(), x.storage());
  const Tensor sliced = ops::slice(x, -1, 2, 5);
  EXPECT_EQ(sliced.storage(), x.storage());
  EXPECT_EQ(sliced.data<double>()[0], 2);
  EXPECT_EQ(sliced.strides(), (Strides{6, 1}));
  EXPECT_FALSE(sliced.is_contiguous());
  // Splitting the dense dim of a strided tensor needs no copy; merging it with the next does.
  EXPECT_EQ(ops::reshape(ops::slice(x, 1, 0, 4), {4, 2, 2}).storage(), x.storage());
  const Tensor merged = ops::reshape(sliced, {12});
  EXPECT_NE(merged.storage(), x.storage());
  EXPECT_EQ(numbers(merged), (std::vector<double>{2, 3, 4, 8, 9, 10, 14, 15, 16, 20, 21, 22}));
}

TEST_F(Layout, ContiguousCopiesOnlyWhatIsStrided) {
  const Tensor x = iota({3, 4});
  EXPECT_EQ(ops::contiguous(x).storage(), x.storage());
  EXPECT_NE(ops::copy(x).storage(), x.storage());
  const Tensor dense = ops::contiguous(ops::slice(x, 1, 1, 3));
  EXPECT_TRUE(dense.is_contiguous());
  EXPECT_EQ(numbers(dense), (std::vector<double>{1, 2, 5, 6, 9, 10}));
}

TEST_F(Layout, SplitAndConcatAreInverse) {
  const Tensor x = iota({3, 8});
  const TensorList parts = ops::split(x, {1, 4, 3}, -1);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].shape(), (Shape{3, 4}));
  EXPECT_EQ(numbers(ops::concat(parts, 1)), numbers(x));
}

// More pieces than an op's attributes and masks hold.
TEST_F(Layout, ManyPieces) {
  Tensor x = iota({2, 100});
  x.set_requires_grad(true);
  std::vector<int64_t> sizes;
  for (int64_t i = 0, rest = 100; rest > 0; ++i) {
    sizes.push_back(std::min<int64_t>(i % 4, rest));
    rest -= sizes.back();
  }
  const TensorList parts = ops::split(x, sizes, 1);
  ASSERT_EQ(parts.size(), sizes.size());
  ASSERT_GT(parts.size(), 36u);
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].dim(1), sizes[i]);
  const Tensor whole = ops::concat(parts, 1);
  EXPECT_EQ(numbers(whole), numbers(x));
  ops::backward(ops::sum(ops::square(whole)));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(x.grad().data<double>()[i], 2.0 * i);
}

// The gradient of a split with all pieces used is one buffer: two allocations more for each padded
// piece and its sum would show here.
TEST_F(Layout, SplitBackwardWritesItsGradientOnce) {
  Tensor leaf = iota({64, 96});
  leaf.set_requires_grad(true);
  const Tensor x = ops::scale(leaf, 1);
  const TensorList parts = ops::split(x, {32, 32, 32}, 1);
  Tensor loss = ops::sum(ops::square(parts[0]));
  for (int i : {1, 2}) loss = ops::add(loss, ops::sum(ops::square(parts[i])));
  context_.allocator()->reset_peak();
  const int64_t before = context_.allocator()->stats().bytes_in_use;
  ops::backward(loss);
  const int64_t peak = context_.allocator()->stats().peak_bytes_in_use - before;
  // The pieces' gradients are as large as the whole together; with the concat that is twice.
  EXPECT_LE(peak, 2 * 64 * 96 * 8 + 20'000);
  EXPECT_EQ(leaf.grad().data<double>()[100], 200);
}

TEST_F(Layout, UnusedPiecesHaveZeroGradient) {
  Tensor leaf = iota({2, 3});
  leaf.set_requires_grad(true);
  const TensorList parts = ops::split(ops::scale(leaf, 2), {1, 2}, 1);
  ops::backward(ops::sum(ops::negate(parts[1])));
  EXPECT_EQ(numbers(leaf.grad()), (std::vector<double>{0, -2, -2, 0, -2, -2}));
}

// Slices and pieces of a leaf whose gradient has a buffer are added into it in place.
TEST_F(Layout, ViewGradientsGoStraightIntoTheLeaf) {
  Tensor leaf = iota({2, 3});
  leaf.set_requires_grad(true);
  leaf.set_grad(full({2, 3}, DType::F64, 10));
  const Tensor buffer = leaf.grad();
  ops::backward(ops::sum(ops::scale(ops::slice(leaf, 1, 0, 2), 1)));
  const TensorList parts = ops::split(leaf, {1, 2}, 1);
  ops::backward(ops::sum(ops::scale(parts[1], 1)));
  EXPECT_EQ(leaf.grad().storage(), buffer.storage());
  EXPECT_EQ(numbers(buffer), (std::vector<double>{11, 12, 11, 11, 12, 11}));
}

TEST_F(Layout, PermuteByHand) {
  const Tensor x = iota({2, 3});
  EXPECT_EQ(numbers(ops::transpose(x, 0, -1)), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  const Tensor y = ops::permute(iota({2, 3, 4}), {2, 0, 1});
  EXPECT_EQ(y.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(y.data<double>()[1 * 6 + 1 * 3 + 2], 1 * 12 + 2 * 4 + 1);
}

TEST_F(Layout, EveryElementSize) {
  for (DType dtype : {DType::U8, DType::F16, DType::BF16, DType::I32, DType::I64}) {
    const Tensor x = ops::cast(iota({5, 7}), dtype);
    const Tensor back = ops::cast(ops::transpose(ops::copy(x), 0, 1), DType::F64);
    EXPECT_EQ(back.data<double>()[3], 21) << to_string(dtype);
    EXPECT_EQ(numbers(ops::transpose(back, 0, 1)), numbers(iota({5, 7}))) << to_string(dtype);
  }
}

TEST_F(Layout, PadSurroundsWithZeros) {
  const Tensor y = ops::pad(iota({2, 2}), -1, 1, 2);
  EXPECT_EQ(numbers(y), (std::vector<double>{0, 0, 1, 0, 0, 0, 2, 3, 0, 0}));
}

TEST_F(Layout, Messages) {
  const Tensor x = iota({2, 3});
  EXPECT_ERROR(ops::reshape(x, {4, 2}), ShapeError,
               "reshape: number of elements must stay the same; got x f64 [2, 3], {shape=[4, 2]}");
  EXPECT_ERROR(ops::reshape(x, {-1, 4}), ShapeError,
               "reshape: the dims beside -1 must divide the number of elements; got x [2, 3], "
               "shape [-1, 4]");
  EXPECT_ERROR(ops::reshape(x, {-1, -1}), ShapeError,
               "reshape: dims must not be negative, but for one -1; got [-1, -1]");
  EXPECT_ERROR(apply(ops::kReshape, {ops::slice(x, 1, 0, 2)}, ops::ReshapeAttrs{{4}}), ShapeError,
               "reshape: x's memory must allow a view; got shape [2, 2] with strides [3, 1] as "
               "[4]; use ops::contiguous");
  EXPECT_ERROR(ops::slice(x, 1, 2, 4), ShapeError,
               "slice: must satisfy 0 <= begin <= end <= size of an existing dim; got x f64 [2, "
               "3], {dim=1, begin=2, end=4}");
  EXPECT_ERROR(ops::split(x, {1, 1}, 1), ShapeError,
               "split: sizes must add up to the size of an existing dim; got x f64 [2, 3], "
               "{dim=1, sizes=[1, 1]}");
  EXPECT_ERROR(ops::split(x, {4, -1}, 1), ShapeError,
               "split: sizes must add up to the size of an existing dim; got x f64 [2, 3], "
               "{dim=1, sizes=[4, -1]}");
  EXPECT_ERROR(ops::split(x, {1, 1}, 2), ShapeError,
               "split: sizes must add up to the size of an existing dim; got x f64 [2, 3], "
               "{dim=2, sizes=[1, 1]}");
  EXPECT_ERROR(ops::concat({x, iota({2, 2})}, 0), ShapeError,
               "concat: all dims but the concatenated one must be alike; got x f64 [2, 3], x f64 "
               "[2, 2], {dim=0}");
  EXPECT_ERROR(ops::concat({x, zeros({2, 3}, DType::F32)}, 0), ShapeError,
               "concat: dtypes must be alike; got x f64 [2, 3], x f32 [2, 3], {dim=0}");
  EXPECT_ERROR(ops::concat({x}, 2), ShapeError,
               "concat: dim must exist; got x f64 [2, 3], {dim=2}");
  EXPECT_ERROR(ops::concat({}, 0), ShapeError, "concat: needs at least one operand; got none");
  EXPECT_ERROR(ops::permute(x, {0, 0}), ShapeError,
               "permute: order must name every dim of x once; got x f64 [2, 3], {order=[0, 0]}");
  EXPECT_ERROR(ops::transpose(x, 0, 2), ShapeError,
               "transpose: dims must exist; got 0 and 2 of x [2, 3]");
  EXPECT_ERROR(ops::broadcast_to(x, {3, 3}), ShapeError,
               "broadcast_to: x must broadcast to the shape; got x f64 [2, 3], {shape=[3, 3]}");
  EXPECT_ERROR(ops::pad(x, 0, -1, 0), ShapeError,
               "pad: must add a number of zeros that is not negative to an existing dim; got x "
               "f64 [2, 3], {dim=0, before=-1, after=0}");
}

}  // namespace
}  // namespace obelisk
