// The backward engine: iterative, in decreasing depth, freeing saved tensors right after their use.
#pragma once

#include "framework/autograd/node.h"

namespace obelisk {

// The ops the engine adds gradients with; they live in a higher layer, and ops::backward() passes
// them.
struct GradientOps {
  const OpDef* add;         // (a, b) -> a + b
  const OpDef* accumulate;  // (destination, x): destination += x, in place
  Tensor (*cast)(const Tensor& x, DType dtype);
};

// Adds d(root)/d(leaf) to the gradient of every leaf that requires one. `root` is a scalar (one
// element); its own gradient is `seed` (undefined: one). A gradient has the dtype of its tensor,
// but that of a bf16 leaf is f32, where many small ones add up; a rule may give either, and the
// engine converts. Gradients of leaves accumulate over calls;
// graphs are freed, so a second call through the same graph throws. Second derivatives are not
// recorded.
void run_backward(const Tensor& root, const Tensor& seed, const GradientOps& gradient_ops);

// From inside a backward rule: goes back from `outputs`, whose gradients are given (undefined: none
// arrived), to the leaves of the graph behind them, which the rule recorded itself. Outputs that no
// recorded op made are passed over.
void run_nested_backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients);

}  // namespace obelisk
