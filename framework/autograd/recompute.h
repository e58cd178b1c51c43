// Recompute: memory for time. What a forward would keep for its backward is thrown away, and made
// again when backward comes to it, with the same bits: kernels are deterministic, and dropout's
// numbers are a function of their counters.
//
// Full: a Segment, such as a transformer layer, keeps its inputs only.
// Selective: results of cheap ops (OpDef::fusion Elementwise) that only later ops want are made
// again from the inputs of the cheap op, which its own backward keeps anyway; GELU of a wide MLP is
// the case that pays.
#pragma once

#include <span>

#include "framework/autograd/node.h"

namespace obelisk {

// A piece of a model that can run again. It outlives every graph through it, as modules do.
class Segment {
 public:
  virtual ~Segment() = default;
  // The same result for the same inputs, each output a new tensor. Undefined inputs are passed on.
  virtual TensorList run_segment(std::span<const Tensor> inputs) const = 0;
};

// segment.run_segment(inputs), keeping the inputs alone where gradients are wanted. At least one
// input must then require a gradient.
TensorList recompute(const Segment& segment, std::span<const Tensor> inputs);

// Nodes recorded in its life save selectively. A thread-local scope.
class SelectiveRecomputeScope {
 public:
  explicit SelectiveRecomputeScope(bool enabled);
  ~SelectiveRecomputeScope();
  SelectiveRecomputeScope(const SelectiveRecomputeScope&) = delete;
  SelectiveRecomputeScope& operator=(const SelectiveRecomputeScope&) = delete;
  static bool enabled();

 private:
  bool outer_;
};

}  // namespace obelisk
