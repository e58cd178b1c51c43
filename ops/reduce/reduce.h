// Reductions over a set of dims: sum, mean, max; and argmax over the last dim.
//
//   sum(x)              all dims, result []
//   sum(x, bits(0, 1))  dims 0 and 1; with keepdim they stay as dims of size 1
//
// x f32, bf16 or f64, contiguous; the result has x's dtype (argmax: i64), or with `wide` f32 for a
// bf16 x, whose sums are made in f32 and else rounded once. Sums are added in a fixed order
// of blocks, with partial results in vector lanes, so that they do not depend on the number of
// threads and the rounding error grows with the logarithm of the length. The sum of nothing is 0,
// and so are its mean and max, which would have no value. NaN in gives NaN out; argmax takes NaN as
// the largest number, and the lowest index among equals.
//
// Gradients: sum spreads dy, mean spreads dy / n, max shares dy equally among equal maxima (as
// torch.amax does). argmax has none.
//
// Errors (ShapeError): "sum: dims must be a set of dims of x; ..." for a bit at or above x's number
// of dims, "argmax: last dim of x must not be empty; ...", other dtypes.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct ReduceAttrs {
  int64_t dims = 0;      // bit i: dim i is reduced
  bool keepdim = false;  // reduced dims stay, with size 1
  bool wide = false;     // the result of a bf16 x is f32
  static constexpr auto fields() {
    return std::tuple{field("dims", &ReduceAttrs::dims), field("keepdim", &ReduceAttrs::keepdim),
                      field("wide", &ReduceAttrs::wide)};
  }
};

struct CountAttrs {
  Dim count = 1;
  static constexpr auto fields() { return std::tuple{field("count", &CountAttrs::count)}; }
};

extern const OpDef kSum, kMean, kMax;  // input x; ReduceAttrs
extern const OpDef kArgmax;            // input x [..., D] -> i64 [...]; NoAttrs
// (x, y, dy) -> dx of max; ReduceAttrs, y and dy as max made them.
extern const OpDef kMaxBackward;
// (x) -> x * (1 / count), the share of each of `count` elements in a mean; 0 for a count of 0.
// CountAttrs: the count may be symbolic while a graph is traced. Contiguous x.
extern const OpDef kShare;

inline constexpr int64_t kAllDims = -1;

Tensor sum(const Tensor& x, int64_t dims = kAllDims, bool keepdim = false, bool wide = false);
Tensor mean(const Tensor& x, int64_t dims = kAllDims, bool keepdim = false);
Tensor max(const Tensor& x, int64_t dims = kAllDims, bool keepdim = false);
Tensor argmax(const Tensor& x);

}  // namespace obelisk::ops
