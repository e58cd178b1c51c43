#include "framework/op/full.h"

#include <algorithm>

#include "framework/graph/tracer.h"

namespace obelisk {
namespace {

void infer_full(const InferArgs& args) {
  const auto& [shape, dtype, value] = args.attrs.as<FullAttrs>();
  args.require(dtype == DType::F32 || dtype == DType::F64 || dtype == DType::I64,
               "dtype must be f32, f64 or i64");
  args.add_output(shape, dtype);
}

template <typename T>
void fill_with(const Tensor& tensor, double value) {
  std::fill_n(tensor.data<T>(), tensor.numel(), static_cast<T>(value));
}

void full_kernel(const KernelArgs& args) {
  const Tensor& y = args.outputs[0];
  const double value = args.attrs.as<FullAttrs>().value;
  if (y.dtype() == DType::I64) return fill_with<int64_t>(y, value);
  if (y.dtype() == DType::F64) return fill_with<double>(y, value);
  fill_with<float>(y, value);
}

Cost full_cost(std::span<const TensorSpec>, std::span<const TensorSpec> outputs, const Attrs&) {
  return {0.0, 0.0, bytes_of(outputs)};
}

}  // namespace

constinit const OpDef kFull{.name = "full",
                            .input_names = {},
                            .infer = infer_full,
                            .parse_attrs = Attrs::parse<FullAttrs>,
                            .cpu = full_kernel,
                            .reference = full_kernel,
                            .fusion = Fusion::Elementwise,
                            .cost = full_cost};

Tensor full_like(const Tensor& x, double value) {
  if (Tracer::current() == nullptr) return full(x.shape(), x.dtype(), value);
  return apply(kFull, std::span<const Tensor>(), FullAttrs{x.dims(), x.dtype(), value})[0];
}

Tensor zeros_like(const Tensor& x) {
  if (Tracer::current() == nullptr) return zeros(x.shape(), x.dtype());
  return full_like(x, 0.0);
}

}  // namespace obelisk
