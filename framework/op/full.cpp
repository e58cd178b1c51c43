#include "framework/op/full.h"

#include <algorithm>

#include "framework/graph/tracer.h"

namespace obelisk {
namespace {

void infer_full(const InferArgs& args) {
  const auto& [shape, dtype, value] = args.attrs.as<FullAttrs>();
  args.require(
      dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F64 || dtype == DType::I64,
      "dtype must be f32, bf16, f64 or i64");
  args.add_output(shape, dtype);
}

void full_kernel(const KernelArgs& args) {
  const Tensor& y = args.outputs[0];
  const double value = args.attrs.as<FullAttrs>().value;
  if (y.dtype() == DType::I64)
    return void(std::fill_n(y.data<int64_t>(), y.numel(), static_cast<int64_t>(value)));
  visit_float(y.dtype(), "full", [&]<typename T>() {
    std::fill_n(y.data<T>(), y.numel(), narrow<T>(static_cast<Compute<T>>(value)));
  });
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

Tensor zeros_like(const Tensor& x) { return zeros_like(x, x.dtype()); }

Tensor zeros_like(const Tensor& x, DType dtype) {
  if (Tracer::current() == nullptr) return zeros(x.shape(), dtype);
  return apply(kFull, std::span<const Tensor>(), FullAttrs{x.dims(), dtype, 0.0})[0];
}

}  // namespace obelisk
