// The language-model head: cross-entropy of x w^T against targets, without ever holding tokens x
// vocabulary.
//
//   loss = cross_entropy(x w^T, targets)          (ops/cross_entropy/cross_entropy.h)
//
// Rows are taken in chunks; a chunk's logits become its loss and then, in place, their own gradient
// d, from which dx = d w and dw += d^T x follow at once, for an upstream gradient of one. Backward
// multiplies both by the upstream scalar. So three products are done where recomputation would do
// four; the price is a dw of the size of w between forward and backward.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct LinearCrossEntropyAttrs {
  bool with_gradient = false;  // makes dx and dw as well
  static constexpr auto fields() {
    return std::tuple{field("with_gradient", &LinearCrossEntropyAttrs::with_gradient)};
  }
};

// (x [N, D], w [V, D], targets i64 [N]) -> loss []; with_gradient: hidden dx [N, D] and dw [V, D].
// f32, bf16 or f64. For bf16 all outputs are f32, the logits are f32 too, and their gradients are
// rounded to bf16 before the products.
//
// Target -1 leaves a row out. Throws ShapeError when shapes do not fit, ValueError for a target
// outside [-1, V).
extern const OpDef kLinearCrossEntropy;

// (destination, x, factor []), destination += factor * x in place. No output. f32 or f64.
extern const OpDef kScaledAccumulate;

// with_gradient is set when gradients are recorded and x or w wants one.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& targets);
void scaled_accumulate(const Tensor& destination, const Tensor& x, const Tensor& factor);

// Rows of a chunk: a function of the sizes alone, so that the order of additions is fixed.
int64_t cross_entropy_chunk_rows(int64_t rows, int64_t vocabulary);

void scaled_accumulate_cpu(const KernelArgs& args);

}  // namespace obelisk::ops
