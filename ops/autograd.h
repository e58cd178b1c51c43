// Backward with the ops that add gradients: what user code calls.
#pragma once

#include "framework/autograd/engine.h"
#include "ops/elementwise/elementwise.h"
#include "ops/layout/layout.h"

namespace obelisk::ops {

// See run_backward(): adds d(loss)/d(leaf) to the gradient of every leaf that requires one. `loss`
// has one element; `seed`, when defined, is its own gradient (one otherwise).
inline void backward(const Tensor& loss, const Tensor& seed = {}) {
  run_backward(loss, seed, {&kAdd, &kAccumulate, &cast});
}

}  // namespace obelisk::ops
