// Drawing token ids from logits.
//
//   p = softmax(logits / temperature) over the top_k largest logits of a row, in f64;
//   id = the first id, in ascending order, whose cumulative p exceeds u * sum(p).
//
// logits f32 or f64 [N, V]; rng_state i64 [3] = {seed, step, first_sample}; result i64 [N]. u is
// one uniform number a row, draw first_sample + row of (seed, stream, step); see
// framework/tensor/philox.h. Temperature 0 takes the largest logit, top_k 0 means all ids; among
// equal logits the lower id comes first. A logit of -inf is never drawn.
//
// Errors: ShapeError for impossible attributes and shapes; ValueError "sample: logits must not be
// NaN or +inf; got nan at row 3, id 5" and "sample: a row must have a finite logit; row 3 has
// none".
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct SampleAttrs {
  double temperature = 1.0;
  int64_t top_k = 0;
  int64_t stream = 0;  // the bits of random_stream()
  static constexpr auto fields() {
    return std::tuple{field("temperature", &SampleAttrs::temperature),
                      field("top_k", &SampleAttrs::top_k), field("stream", &SampleAttrs::stream)};
  }
};

extern const OpDef kSample;  // inputs logits, rng_state

Tensor sample(const Tensor& logits_NV, const Tensor& rng_state, const SampleAttrs& attrs = {});

}  // namespace obelisk::ops
