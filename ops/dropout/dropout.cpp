#include "ops/dropout/dropout.h"

#include <algorithm>
#include <cmath>

#include "framework/tensor/philox.h"
#include "ops/dropout/dropout_kernels.h"

namespace obelisk::ops {
namespace {

constexpr const char* kNames[] = {"x", "rng_state"};

void infer_dropout(const InferArgs& args) {
  args.require_same_float({0});
  const double p = args.attrs.as<DropoutAttrs>().p;
  args.require(p >= 0.0 && p < 1.0, "p must be in [0, 1)");
  args.require(args.inputs[1].dtype == DType::I64 && args.shape(1) == DimShape{3},
               "rng_state must be i64 [3]");
  args.add_output(args.shape(0), args.inputs[0].dtype);
}

DropoutDraws draws_of(const KernelArgs& args) {
  const auto& [p, stream] = args.attrs.as<DropoutAttrs>();
  const Tensor& x = args.inputs[0];
  const int64_t* state = args.inputs[1].data<int64_t>();
  const int64_t samples = x.num_dims() == 0 ? 1 : std::max<int64_t>(x.shape()[0], 1);
  const auto per_sample = static_cast<uint64_t>(x.numel() / samples);
  return {.seed = static_cast<uint64_t>(state[0]),
          .stream = static_cast<uint64_t>(stream),
          .step = static_cast<uint64_t>(state[1]),
          .first_element = static_cast<uint64_t>(state[2]) * per_sample,
          .p = p};
}

void dropout_kernel(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  visit_float(x.dtype(), "dropout", [&]<typename T>() {
    run_dropout<T>(args.context, draws_of(args), x.data<T>(), y.data<T>(), x.numel());
  });
}

void dropout_reference(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  const DropoutDraws draws = draws_of(args);
  const Philox random(draws.seed, draws.stream, draws.step);
  visit_f32_f64(x.dtype(), "dropout", [&]<typename T>() {
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double uniform = random.uniform(draws.first_element + static_cast<uint64_t>(i));
      const double kept = static_cast<double>(x.data<T>()[i]) * draws.scale();
      y.data<T>()[i] = static_cast<T>(uniform >= draws.p ? kept : 0.0);
    }
  });
}

// The map is linear with a diagonal matrix: the gradient goes through the same op.
void dropout_backward(const BackwardArgs& args) {
  args.grad_inputs[0] = apply(kDropout, {args.grad_outputs[0], args.inputs[1]}, args.attrs)[0];
}

// Ten rounds of two products make four draws: about five integer operations an element.
Cost dropout_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                  const Attrs&) {
  return {5.0 * static_cast<double>(product(inputs[0].shape).number()), bytes_of(inputs),
          bytes_of(outputs)};
}

}  // namespace

int32_t DropoutDraws::threshold() const { return static_cast<int32_t>(std::ceil(p * 0x1p24)); }

std::array<uint32_t, 2> DropoutDraws::key() const {
  const uint64_t key = mix64(seed + 0x9E3779B97F4A7C15u) ^ stream;
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

constinit const OpDef kDropout{.name = "dropout",
                               .input_names = kNames,
                               .infer = infer_dropout,
                               .parse_attrs = Attrs::parse<DropoutAttrs>,
                               .cpu = dropout_kernel,
                               .reference = dropout_reference,
                               .backward = dropout_backward,
                               .saved_inputs = bit(1),
                               .fusion = Fusion::Elementwise,
                               .cost = dropout_cost};

Tensor dropout(const Tensor& x, const Tensor& rng_state, double p, uint64_t stream) {
  if (p == 0.0) return x;
  return apply(kDropout, {x, rng_state}, DropoutAttrs{p, static_cast<int64_t>(stream)})[0];
}

}  // namespace obelisk::ops
