// cast: definition, reference, gradient.
#include "ops/layout/cast.h"

#include "ops/elementwise/strided.h"
#include "ops/layout/convert.h"
#include "ops/layout/layout.h"

namespace obelisk::ops {
namespace {

constexpr const char* kNames[] = {"x"};

void infer_cast(const InferArgs& args) {
  args.add_output(args.shape(0), args.attrs.as<CastAttrs>().dtype);
}

void cast_kernel(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  const StridedLoop<2> loop(y.shape(), {x.strides(), y.strides()});
  const ConvertRange convert = convert_range(x.dtype(), y.dtype());
  const auto* from = static_cast<const std::byte*>(x.raw_data());
  auto* to = static_cast<std::byte*>(y.raw_data());
  const int64_t from_size = size_of(x.dtype()), to_size = size_of(y.dtype());
  const int64_t step = loop.steps()[0];
  loop.parallel(args.context, [&](const std::array<int64_t, 2>& at, int64_t n) {
    if (step == 1) return convert(from + at[0] * from_size, to + at[1] * to_size, n);
    for (int64_t i = 0; i < n; ++i)
      convert(from + (at[0] + i * step) * from_size, to + (at[1] + i) * to_size, 1);
  });
}

void cast_reference(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  visit_dtype(x.dtype(), [&]<typename From>() {
    visit_dtype(y.dtype(), [&]<typename To>() {
      for (int64_t i = 0; i < y.numel(); ++i)
        y.data<To>()[i] =
            convert_element<To>(x.data<From>()[strided_offset(i, x.shape(), x.strides())]);
    });
  });
}

void cast_backward(const BackwardArgs& args) {
  args.grad_inputs[0] = cast(args.grad_outputs[0], args.inputs[0].dtype());
}

Cost cast_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
               const Attrs&) {
  return {0.0, bytes_of(inputs), bytes_of(outputs)};
}

}  // namespace

constinit const OpDef kCast{.name = "cast",
                            .input_names = kNames,
                            .infer = infer_cast,
                            .parse_attrs = Attrs::parse<CastAttrs>,
                            .cpu = cast_kernel,
                            .reference = cast_reference,
                            .backward = cast_backward,
                            .strided_inputs = bit(0),
                            .fusion = Fusion::Elementwise,
                            .cost = cast_cost};

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return apply(kCast, {x}, CastAttrs{dtype})[0];
}

}  // namespace obelisk::ops
