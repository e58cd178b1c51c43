#include "tests/ops/op_run.h"

#include <algorithm>
#include <cstring>

#include "framework/autograd/node.h"
#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/layout/convert.h"
#include "ops/layout/layout.h"
#include "ops/reduce/reduce.h"

namespace obelisk {
namespace {

// Element i of an operand, f32-exact.
double number(const Operand& operand, const Philox& random, int64_t i) {
  switch (operand.fill) {
    case Operand::Fill::Normal:
      return static_cast<float>(operand.mean + operand.scale * random.normal(i));
    case Operand::Fill::Positive:
      return static_cast<float>(operand.scale * (0.5 + random.uniform(i)));
    case Operand::Fill::Ids:
      return static_cast<double>(random.bits(i) % static_cast<uint64_t>(operand.bound));
    default:
      return operand.values[i];
  }
}

void put(const Tensor& tensor, int64_t offset, double value) {
  switch (tensor.dtype()) {
    case DType::F32:
      tensor.data<float>()[offset] = static_cast<float>(value);
      break;
    case DType::F64:
      tensor.data<double>()[offset] = value;
      break;
    case DType::BF16:
      tensor.data<BFloat16>()[offset] = bfloat16_from(static_cast<float>(value));
      break;
    default:
      tensor.data<int64_t>()[offset] = static_cast<int64_t>(value);
  }
}

double rounded(const Operand& operand, DType numbers, double value) {
  if (numbers != DType::BF16 || operand.is_sum || operand.always_f64 || !is_float(operand.dtype))
    return value;
  return float_from(bfloat16_from(static_cast<float>(value)));
}

Tensor make_operand(const Operand& operand, DType dtype, DType numbers, uint64_t seed, int index) {
  if (operand.fill == Operand::Fill::Absent) return Tensor();
  const DType of_run = operand.is_sum ? sum_dtype(dtype) : dtype;
  const DType actual = operand.dtype == DType::F64 && !operand.always_f64 ? of_run : operand.dtype;
  const int64_t n = num_elements(operand.shape);
  const int64_t width = operand.shape.empty() ? 1 : operand.shape.last();
  const int64_t pitch = width + operand.row_gap;
  const Philox random(seed, random_stream("operand", std::to_string(index)), 0);
  const int64_t rows = width == 0 ? 0 : n / width;
  Tensor buffer = empty({operand.row_gap == 0 ? n : rows * pitch}, actual);
  for (int64_t i = 0; i < n; ++i)
    put(buffer, i / width * pitch + i % width,
        rounded(operand, numbers, number(operand, random, i)));
  Strides strides = contiguous_strides(operand.shape);
  for (int i = 0; i + 1 < strides.size(); ++i)
    strides[i] = width == 0 ? 0 : strides[i] / width * pitch;
  return buffer.alias(operand.shape, strides, 0);
}

double at(const Tensor& tensor, int64_t offset) {
  switch (tensor.dtype()) {
    case DType::F32:
      return tensor.data<float>()[offset];
    case DType::F64:
      return tensor.data<double>()[offset];
    case DType::I64:
      return static_cast<double>(tensor.data<int64_t>()[offset]);
    case DType::I32:
      return tensor.data<int32_t>()[offset];
    case DType::U8:
      return tensor.data<uint8_t>()[offset];
    case DType::BF16:
      return float_from(tensor.data<BFloat16>()[offset]);
    case DType::F16:
      return ops::float_from(tensor.data<Float16>()[offset]);
  }
  return 0;
}

TensorList run_which(const OpDef& op, const TensorList& inputs, const Attrs& attrs, Which which) {
  if (which == Which::Kernel) return apply(op, inputs, attrs);
  if (which == Which::Decompose) return op.decompose(inputs, attrs);
  return apply_with(op.reference, op, inputs, attrs);
}

// sum_i cotangent_i * output_i over the outputs that carry gradient, as a scalar with autograd
// state.
Tensor objective(const OpCase& op_case, const TensorList& outputs) {
  Tensor total;
  for (int index : gradient_outputs(op_case, outputs)) {
    const Tensor output = ops::cast(outputs[index], sum_dtype(outputs[index].dtype()));
    const Philox random(7, random_stream("cotangent", std::to_string(index)), 0);
    Tensor cotangent = empty(output.shape(), output.dtype());
    for (int64_t i = 0; i < cotangent.numel(); ++i) put(cotangent, i, random.normal(i));
    const Tensor part = ops::sum(ops::multiply(output, cotangent));
    total = total.defined() ? ops::add(total, part) : part;
  }
  return total;
}

}  // namespace

Values to_values(const Tensor& tensor) {
  Values values{tensor.shape(), tensor.dtype(), {}};
  const int64_t n = tensor.numel();
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, offset = 0;
    for (int dim = tensor.num_dims() - 1; dim >= 0; --dim) {
      offset += rest % tensor.shape()[dim] * tensor.strides()[dim];
      rest /= tensor.shape()[dim];
    }
    values.numbers.push_back(at(tensor, offset));
  }
  return values;
}

TensorList make_rounded_inputs(const OpCase& op_case, DType dtype, DType numbers, uint64_t seed) {
  TensorList inputs;
  for (size_t i = 0; i < op_case.inputs.size(); ++i)
    inputs.push_back(make_operand(op_case.inputs[i], dtype, numbers, seed, static_cast<int>(i)));
  return inputs;
}

TensorList make_inputs(const OpCase& op_case, DType dtype, uint64_t seed) {
  return make_rounded_inputs(op_case, dtype, dtype, seed);
}

std::vector<Values> run_forward(const OpDef& op, const OpCase& op_case, DType dtype, Which which) {
  return run_forward(op, op_case, dtype, dtype, which);
}

std::vector<Values> run_forward(const OpDef& op, const OpCase& op_case, DType dtype, DType numbers,
                                Which which) {
  NoGradScope no_grad;
  const TensorList inputs = make_rounded_inputs(op_case, dtype, numbers);
  const TensorList outputs = run_which(op, inputs, op_case.attrs, which);
  std::vector<Values> results;
  for (const Tensor& output : outputs) results.push_back(to_values(output));
  for (size_t i = 0; i < inputs.size(); ++i)
    if ((op.writes >> i & 1u) != 0 && inputs[i].defined()) results.push_back(to_values(inputs[i]));
  return results;
}

bool has_float_operand(const OpCase& op_case) {
  return std::any_of(op_case.inputs.begin(), op_case.inputs.end(), [](const Operand& operand) {
    return operand.fill != Operand::Fill::Absent && operand.dtype == DType::F64 &&
           !operand.always_f64;
  });
}

std::vector<int> gradient_inputs(const OpCase& op_case) {
  if (!op_case.gradient_inputs.empty()) return op_case.gradient_inputs;
  std::vector<int> indices;
  for (size_t i = 0; i < op_case.inputs.size(); ++i)
    if (op_case.inputs[i].fill == Operand::Fill::Normal ||
        op_case.inputs[i].fill == Operand::Fill::Positive)
      indices.push_back(static_cast<int>(i));
  return indices;
}

std::vector<int> gradient_outputs(const OpCase& op_case, const TensorList& outputs) {
  if (!op_case.gradient_outputs.empty()) return op_case.gradient_outputs;
  std::vector<int> indices;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && is_float(outputs[i].dtype()))
      indices.push_back(static_cast<int>(i));
  return indices;
}

GradientRun run_gradient(const OpDef& op, const OpCase& op_case, const GradientOptions& options) {
  TensorList inputs = make_rounded_inputs(op_case, options.dtype, options.numbers);
  const std::vector<int> wanted = gradient_inputs(op_case);
  for (size_t k = 0; k < wanted.size(); ++k) {
    Tensor& input = inputs[wanted[k]];
    if (!options.perturb.empty()) {
      // Leaves with a gap between rows are rebuilt dense elsewhere; perturbation keeps their
      // layout.
      const int64_t width = input.num_dims() == 0 ? 1 : input.shape().last();
      const int64_t pitch = input.num_dims() < 2 ? width : input.strides()[input.num_dims() - 2];
      for (int64_t i = 0; i < input.numel(); ++i) {
        const int64_t offset = i / width * pitch + i % width;
        put(input, offset, at(input, offset) + options.perturb[k][i]);
      }
    }
    if (options.only_input < 0 || options.only_input == wanted[k]) input.set_requires_grad(true);
    if (options.initial_gradient != 0)
      input.set_grad(full(input.shape(), sum_dtype(input.dtype()), options.initial_gradient));
  }
  const TensorList outputs = run_which(op, inputs, op_case.attrs, options.which);
  const Tensor loss = objective(op_case, outputs);
  GradientRun run;
  run.objective = loss.dtype() == DType::F64 ? loss.item<double>() : loss.item<float>();
  if (!options.backward) return run;
  ops::backward(loss);
  for (int index : wanted) {
    const Tensor gradient = inputs[index].grad();
    run.gradients.push_back(
        gradient.defined()
            ? to_values(gradient)
            : to_values(zeros(inputs[index].shape(), sum_dtype(inputs[index].dtype()))));
  }
  return run;
}

}  // namespace obelisk
