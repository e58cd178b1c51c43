#include "framework/op/op_def.h"

namespace obelisk {

TensorSpec spec_of(const Tensor& tensor) {
  if (!tensor.defined()) return {{}, DType::F32, false};
  return {tensor.dims(), tensor.dtype(), true};
}

std::string to_string(const TensorSpec& spec) {
  if (!spec.defined) return "absent";
  return fmt::format("{} {}", to_string(spec.dtype), to_string(spec.shape));
}

void InferArgs::fail(const char* rule) const {
  std::string operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i > 0) operands += ", ";
    operands += i < input_names.size() ? input_names[i] : input_names.back();
    operands += " " + obelisk::to_string(inputs[i]);
  }
  const std::string attributes = attrs.to_string();
  if (attributes != "{}") operands += (operands.empty() ? "" : ", ") + attributes;
  raise<ShapeError>("{}: {}; got {}", op, rule, operands);
}

void InferArgs::require_same_float(std::initializer_list<int> which) const {
  const TensorSpec* first = nullptr;
  for (int i : which) {
    const TensorSpec& spec = inputs[i];
    if (!spec.defined) continue;
    if (!is_float(spec.dtype) || spec.dtype == DType::F16) fail("dtypes must be f32, bf16 or f64");
    if (first != nullptr && spec.dtype != first->dtype) fail("dtypes must be alike");
    first = &spec;
  }
}

void InferArgs::require_same_float_into(int destination, std::initializer_list<int> which) const {
  require_same_float(which);
  const DType from = inputs[*which.begin()].dtype, to = inputs[destination].dtype;
  if (from == to || (from == DType::BF16 && to == DType::F32)) return;
  require_same_float({destination});
  fail("dtypes must be alike");
}

void InferArgs::require_sums(std::initializer_list<int> sums, int input) const {
  for (int i : sums)
    if (inputs[i].defined && inputs[i].dtype != sum_dtype(inputs[input].dtype))
      fail("sums must be of the operands' dtype, or f32 where that is bf16");
}

void InferArgs::require_same_f32_f64(std::initializer_list<int> which) const {
  for (int i : which)
    if (inputs[i].defined && inputs[i].dtype != DType::F32 && inputs[i].dtype != DType::F64)
      fail("dtypes must be f32 or f64");
  require_same_float(which);
}

double bytes_of(std::span<const TensorSpec> specs) {
  double bytes = 0;
  for (const TensorSpec& spec : specs)
    if (spec.defined)
      bytes += static_cast<double>(product(spec.shape).number()) *
               static_cast<double>(size_of(spec.dtype));
  return bytes;
}

}  // namespace obelisk
