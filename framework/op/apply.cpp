// apply(): infer, allocate, run, record.

#include "framework/autograd/node.h"
#include "framework/base/scope.h"
#include "framework/graph/tracer.h"
#include "framework/op/op_def.h"

namespace obelisk {
namespace {

// Bit i of a mask; an op with more operands than bits marks none of the later ones.
bool has(uint32_t mask, size_t i) { return i < 32 && (mask >> i & 1u) != 0; }

void check_layout(const OpDef& op, std::span<const Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    if (!x.defined() || x.is_contiguous()) continue;
    const bool strided = has(op.strided_inputs, i) || op.view != nullptr;
    const bool dense_rows =
        x.num_dims() == 0 || x.strides().last() == 1 || x.impl().shape.last() <= 1;
    OBELISK_CHECK(strided && (dense_rows || op.view != nullptr), ShapeError,
                  "{}: input {} must be {}; got shape {} with strides {}; use ops::contiguous",
                  op.name, i, strided ? "dense in its last dim" : "contiguous", to_string(x.dims()),
                  to_string(x.strides()));
  }
}

SpecList infer(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs) {
  SpecList specs, outputs;
  for (const Tensor& input : inputs) specs.push_back(spec_of(input));
  op.infer({op.name, op.input_names, specs, attrs, outputs});
  return outputs;
}

// The device's kernel; null when the op runs by decompose.
Kernel device_kernel(const OpDef& op, const Device& device) {
  const Kernel kernel = device.kind == DeviceKind::Cpu ? op.cpu : op.cuda;
  OBELISK_CHECK(kernel != nullptr || op.decompose != nullptr, DeviceError,
                "{}: this op has no kernel for device {}", op.name, to_string(device));
  return kernel;
}

bool wants_gradient(const OpDef& op, std::span<const Tensor> inputs) {
  if (!NoGradScope::grad_enabled()) return false;
  bool wanted = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    OBELISK_CHECK(!has(op.writes, i), Bug,
                  "bug: {} writes input {} in place, which requires a gradient; open a NoGradScope",
                  op.name, i);
    wanted = true;
  }
  return wanted && op.backward != nullptr;
}

// Fills `outputs` by view, kernel or decomposition.
void compute(const OpDef& op, Kernel kernel, std::span<const Tensor> inputs, const Attrs& attrs,
             const SpecList& specs, TensorList& outputs) {
  if (kernel == nullptr && op.view == nullptr) {
    outputs = op.decompose(inputs, attrs);
  } else if (Tracer* tracer = Tracer::current()) {
    tracer->record(op, inputs, attrs, specs, outputs);
  } else if (op.view != nullptr) {
    op.view(inputs[0], attrs, outputs);
  } else {
    for (const TensorSpec& spec : specs)
      outputs.push_back(empty(to_numbers(spec.shape), spec.dtype));
    kernel({ExecContext::current(), inputs, outputs, attrs});
  }
}

TensorList run(const OpDef& op, Kernel kernel, std::span<const Tensor> inputs, const Attrs& attrs) {
  check_layout(op, inputs);
  const SpecList specs = infer(op, inputs, attrs);
  const bool with_gradient = wants_gradient(op, inputs);
  TensorList outputs;
  if (with_gradient || op.backward != nullptr) {
    NoGradScope no_grad;
    compute(op, kernel, inputs, attrs, specs, outputs);
  } else {
    // Without a rule of its own an op is differentiated through its parts.
    compute(op, kernel, inputs, attrs, specs, outputs);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (has(op.writes, i) && inputs[i].defined()) inputs[i].storage()->mark_written(op.name);
  if (with_gradient) record_node(op, attrs, inputs, outputs);
  return outputs;
}

TensorList run_placed(const OpDef& op, Kernel kernel, std::span<const Tensor> inputs,
                      const Attrs& attrs) {
  OpScope scope(op.name);
  try {
    return run(op, kernel, inputs, attrs);
  } catch (Error& error) {
    if (const std::string* path = PathScope::current()) error.add_place(*path);
    throw;
  }
}

}  // namespace

TensorList apply(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs) {
  const Kernel kernel =
      op.view != nullptr ? nullptr : device_kernel(op, ExecContext::current().device());
  return run_placed(op, kernel, inputs, attrs);
}

TensorList apply_with(Kernel kernel, const OpDef& op, std::span<const Tensor> inputs,
                      const Attrs& attrs) {
  return run_placed(op, kernel, inputs, attrs);
}

}  // namespace obelisk
