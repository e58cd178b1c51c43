#include "framework/autograd/recompute.h"

#include "framework/autograd/engine.h"

namespace obelisk {
namespace {

thread_local bool selective = false;

struct RecomputeAttrs {
  const Segment* segment = nullptr;
  static constexpr auto fields() { return std::tuple{}; }  // an address says nothing to a reader
};

TensorList run_recorded(const Segment& segment, std::span<const Tensor> inputs) {
  const GradScope recorded;
  return segment.run_segment(inputs);
}

TensorList run_unrecorded(const Segment& segment, std::span<const Tensor> inputs) {
  const NoGradScope no_grad;
  return segment.run_segment(inputs);
}

void recompute_backward(const BackwardArgs& args) {
  TensorList inputs;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    inputs.push_back(args.inputs[i].defined() ? args.inputs[i].detach() : Tensor());
    if (args.needed[i]) inputs.back().set_requires_grad(true);
  }
  const TensorList outputs = run_recorded(*args.attrs.as<RecomputeAttrs>().segment, inputs);
  run_nested_backward(outputs, args.grad_outputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (args.needed[i]) args.grad_inputs[i] = inputs[i].grad();
}

// Never applied by name: recompute() runs the segment itself.
constexpr OpDef kRecompute = {
    .name = "recompute",
    .input_names = {},
    .infer = nullptr,
    .backward = recompute_backward,
    .saved_inputs = ~uint32_t{0},
};

}  // namespace

TensorList recompute(const Segment& segment, std::span<const Tensor> inputs) {
  if (!NoGradScope::grad_enabled()) return segment.run_segment(inputs);
  bool wanted = false;
  for (const Tensor& input : inputs) wanted |= input.defined() && input.requires_grad();
  OBELISK_CHECK(wanted, Bug, "bug: recompute of a segment none of whose inputs wants a gradient");
  TensorList outputs = run_unrecorded(segment, inputs);
  record_node(kRecompute, RecomputeAttrs{&segment}, inputs, outputs);
  return outputs;
}

SelectiveRecomputeScope::SelectiveRecomputeScope(bool enabled) : outer_(selective) {
  selective = enabled;
}
SelectiveRecomputeScope::~SelectiveRecomputeScope() { selective = outer_; }
bool SelectiveRecomputeScope::enabled() { return selective; }

}  // namespace obelisk
