// The vector kernel of dropout.
#pragma once

#include <array>

#include "framework/tensor/context.h"

namespace obelisk::ops {

// One dropout call: which draws, and when they keep.
struct DropoutDraws {
  uint64_t seed, stream, step;
  uint64_t first_element;  // logical index of x's first element
  double p;

  // Uniforms are k * 2^-24 with k an integer, so u >= p is k >= ceil(p * 2^24), exactly.
  int32_t threshold() const;
  double scale() const { return 1.0 / (1.0 - p); }
  // The Philox key of (seed, stream), as the class Philox forms it; tests hold the two together.
  std::array<uint32_t, 2> key() const;
};

template <typename T>
void run_dropout(const ExecContext& context, const DropoutDraws& draws, const T* x, T* y,
                 int64_t n);

}  // namespace obelisk::ops
