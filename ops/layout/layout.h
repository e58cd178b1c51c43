// Moving elements without arithmetic: views, copies, broadcasts and casts. Every dtype is welcome;
// gradients flow through floats.
//
// Views share x's storage and cost nothing: reshape, slice, split. Copies make a new contiguous
// tensor: copy, concat, permute, broadcast_to, pad, cast; they take strided operands with dense
// rows.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct ReshapeAttrs {
  DimShape shape;
  static constexpr auto fields() { return std::tuple{field("shape", &ReshapeAttrs::shape)}; }
};
struct SliceAttrs {
  int64_t dim = 0;
  Dim begin = 0;
  Dim end = 0;  // one past the last
  static constexpr auto fields() {
    return std::tuple{field("dim", &SliceAttrs::dim), field("begin", &SliceAttrs::begin),
                      field("end", &SliceAttrs::end)};
  }
};
struct SplitAttrs {
  int64_t dim = 0;
  Shape sizes;  // at most six pieces; split() nests for more
  static constexpr auto fields() {
    return std::tuple{field("dim", &SplitAttrs::dim), field("sizes", &SplitAttrs::sizes)};
  }
};
struct ConcatAttrs {
  int64_t dim = 0;
  static constexpr auto fields() { return std::tuple{field("dim", &ConcatAttrs::dim)}; }
};
struct PermuteAttrs {
  Shape order;  // dim i of the result is dim order[i] of x
  static constexpr auto fields() { return std::tuple{field("order", &PermuteAttrs::order)}; }
};
struct BroadcastToAttrs {
  DimShape shape;
  static constexpr auto fields() { return std::tuple{field("shape", &BroadcastToAttrs::shape)}; }
};
struct PadAttrs {
  int64_t dim = 0;
  Dim before = 0;
  Dim after = 0;
  static constexpr auto fields() {
    return std::tuple{field("dim", &PadAttrs::dim), field("before", &PadAttrs::before),
                      field("after", &PadAttrs::after)};
  }
};
struct CastAttrs {
  DType dtype = DType::F32;
  static constexpr auto fields() { return std::tuple{field("dtype", &CastAttrs::dtype)}; }
};

// Dims in attributes are never negative; the typed functions below count negative ones from the
// end.
extern const OpDef kReshape, kSlice, kSplit;
extern const OpDef kConcat;  // any number of inputs
extern const OpDef kCopy, kPermute, kBroadcastTo, kPad, kCast;

// The same elements in row-major order under another shape. One dim may be -1: it takes what is
// left. A view where x's memory allows it (always, when x is contiguous; splitting a dim, too), a
// copy otherwise. Error: "reshape: number of elements must stay the same; ...".
Tensor reshape(const Tensor& x, const Shape& shape);
// The same for dims that may be symbolic, without -1.
Tensor reshape(const Tensor& x, const DimShape& shape);
inline Tensor reshape(const Tensor& x, std::initializer_list<int64_t> shape) {
  return reshape(x, Shape(shape));
}

// Elements [begin, end) of a dim, a view. Error: "slice: must satisfy 0 <= begin <= end <= size of
// an existing dim; ...".
Tensor slice(const Tensor& x, int dim, Dim begin, Dim end);

// Consecutive pieces of a dim, views. Backward is one concat into x's gradient. Error: "split:
// sizes must add up to the size of an existing dim; ...".
TensorList split(const Tensor& x, std::span<const int64_t> sizes, int dim);
inline TensorList split(const Tensor& x, std::initializer_list<int64_t> sizes, int dim) {
  return split(x, std::span<const int64_t>(sizes.begin(), sizes.size()), dim);
}

// Operands one after another in `dim`; dtypes and all other dims alike. At least one operand.
Tensor concat(std::span<const Tensor> operands, int dim);
inline Tensor concat(std::initializer_list<Tensor> operands, int dim) {
  return concat(std::span<const Tensor>(operands.begin(), operands.size()), dim);
}

// A copy with dims in another order. Error: "permute: order must name every dim of x once; ...".
Tensor permute(const Tensor& x, const Shape& order);
// A copy with two dims exchanged.
Tensor transpose(const Tensor& x, int dim_a, int dim_b);

// x itself when it is contiguous, a copy otherwise.
Tensor contiguous(const Tensor& x);
// Always a new tensor.
Tensor copy(const Tensor& x);

// x repeated along missing dims and dims of size 1, written out. Error: "broadcast_to: x must
// broadcast to the shape; ...". Backward sums.
Tensor broadcast_to(const Tensor& x, const DimShape& shape);

// Zeros round x in one dim.
Tensor pad(const Tensor& x, int dim, Dim before, Dim after);

// Elements converted; x itself when it has the dtype already. To a float: rounded to nearest even,
// NaN stays NaN. To an integer: rounded toward zero, NaN becomes 0, numbers outside the dtype's
// range become its nearest end. Gradients between floats are cast back.
Tensor cast(const Tensor& x, DType dtype);

}  // namespace obelisk::ops
