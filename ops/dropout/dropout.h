// Dropout (Srivastava et al. 2014), inverted: y = x / (1 - p) where kept, 0 where dropped.
//
// x f32, bf16 or f64, at least one sample in dim 0; rng_state i64 [3] = {seed, step, first_sample}.
// An element is dropped with probability p, by the counter-based generator of
// framework/tensor/philox.h: element i of x takes draw (first_sample * elements of a sample + i) of
// (seed, stream, step), and is kept where that uniform number is at least p. So the mask does not
// depend on threads, or on how a batch is cut into parts along dim 0; backward draws it again, and
// nothing is kept but rng_state.
//
// Errors (ShapeError): "dropout: p must be in [0, 1); ...", "dropout: rng_state must be i64 [3];
// ...".
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct DropoutAttrs {
  double p = 0.0;
  int64_t stream = 0;  // the bits of random_stream()
  static constexpr auto fields() {
    return std::tuple{field("p", &DropoutAttrs::p), field("stream", &DropoutAttrs::stream)};
  }
};

extern const OpDef kDropout;  // inputs x, rng_state

// x itself when p is 0.
Tensor dropout(const Tensor& x, const Tensor& rng_state, double p, uint64_t stream);

}  // namespace obelisk::ops
