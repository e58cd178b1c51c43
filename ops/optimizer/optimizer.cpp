#include "ops/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

namespace obelisk::ops {
namespace {

// --- squared_norm

void infer_squared_norm(const InferArgs& args) {
  args.require_same_f32_f64({0});
  args.add_output({}, DType::F64);
}

void squared_norm_reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "squared_norm", [&]<typename T>() {
    const T* x = args.inputs[0].data<T>();
    double sum = 0;
    for (int64_t i = 0; i < args.inputs[0].numel(); ++i) sum += static_cast<double>(x[i]) * x[i];
    *args.outputs[0].data<double>() = sum;
  });
}

constexpr const char* kSquaredNormInputs[] = {"x"};

// --- clip_factor

void infer_clip_factor(const InferArgs& args) {
  args.require(args.inputs[0].dtype == DType::F64 && args.shape(0).empty(),
               "norm_sq must be an f64 scalar");
  args.add_output({}, DType::F64);
}

void clip_factor_kernel(const KernelArgs& args) {
  const double max_norm = args.attrs.as<ClipFactorAttrs>().max_norm;
  const double factor = max_norm / (std::sqrt(args.inputs[0].item<double>()) + 1e-6);
  // std::min returns its first argument when the comparison with NaN fails.
  *args.outputs[0].data<double>() = max_norm == 0 ? 1.0 : std::min(factor, 1.0);
}

constexpr const char* kClipFactorInputs[] = {"norm_sq"};

// --- adamw

void infer_adamw(const InferArgs& args) {
  args.require_same_f32_f64({0, 1, 2, 3});
  for (int i : {1, 2, 3})
    args.require(args.shape(i) == args.shape(0), "param, m, v and grad must have the same shape");
  args.require(args.inputs[4].dtype == DType::F64 && args.shape(4).empty(),
               "clip must be an f64 scalar");
  args.require(args.inputs[5].dtype == DType::F64 && args.shape(5) == DimShape{2},
               "rates must be f64 [2], learning rate and step");
  if (args.inputs[6].defined)
    args.require(args.inputs[6].dtype == DType::BF16 && args.shape(6) == args.shape(0),
                 "copy must be bf16 and have the shape of param");
}

void adamw_reference(const KernelArgs& args) {
  const AdamWConstants c(args.attrs.as<AdamWAttrs>(), args.inputs[4], args.inputs[5]);
  visit_f32_f64(args.inputs[0].dtype(), "adamw", [&]<typename T>() {
    T* p = args.inputs[0].data<T>();
    T* m = args.inputs[1].data<T>();
    T* v = args.inputs[2].data<T>();
    const T* grad = args.inputs[3].data<T>();
    BFloat16* copy = args.inputs[6].defined() ? args.inputs[6].data<BFloat16>() : nullptr;
    for (int64_t i = 0; i < args.inputs[0].numel(); ++i) {
      const double g = c.clip * grad[i];
      const double mean = m[i] + c.one_minus_beta1 * (g - m[i]);
      const double square = c.beta2 * v[i] + c.one_minus_beta2 * g * g;
      m[i] = static_cast<T>(mean);
      v[i] = static_cast<T>(square);
      p[i] = static_cast<T>(c.keep * p[i] -
                            c.step_size * mean / (std::sqrt(square) * c.inverse_root + c.epsilon));
      if (copy != nullptr) copy[i] = bfloat16_from(static_cast<float>(p[i]));
    }
  });
}

Cost adamw_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec>, const Attrs&) {
  const double elements = static_cast<double>(product(inputs[0].shape).number());
  // Four streams in, three out, and the copy.
  return {14 * elements, bytes_of(inputs.first(6)),
          bytes_of(inputs.first(3)) + bytes_of(inputs.subspan(6))};
}

constexpr const char* kAdamWInputs[] = {"param", "m", "v", "grad", "clip", "rates", "copy"};

}  // namespace

AdamWConstants::AdamWConstants(const AdamWAttrs& attrs, const Tensor& clip_in,
                               const Tensor& rates) {
  const double learning_rate = rates.data<double>()[0];
  const double step = rates.data<double>()[1];
  clip = clip_in.item<double>();
  keep = 1.0 - learning_rate * attrs.weight_decay;
  beta2 = attrs.beta2;
  one_minus_beta1 = 1.0 - attrs.beta1;
  one_minus_beta2 = 1.0 - attrs.beta2;
  step_size = learning_rate / (1.0 - std::pow(attrs.beta1, step));
  inverse_root = 1.0 / std::sqrt(1.0 - std::pow(attrs.beta2, step));
  epsilon = attrs.epsilon;
}

const OpDef kSquaredNorm = {
    .name = "squared_norm",
    .input_names = kSquaredNormInputs,
    .infer = infer_squared_norm,
    .cpu = squared_norm_cpu,
    .reference = squared_norm_reference,
    .fusion = Fusion::Reduction,
    .cost = streaming_cost<2>,
};

const OpDef kClipFactor = {
    .name = "clip_factor",
    .input_names = kClipFactorInputs,
    .infer = infer_clip_factor,
    .parse_attrs = Attrs::parse<ClipFactorAttrs>,
    .cpu = clip_factor_kernel,
    .reference = clip_factor_kernel,
    .fusion = Fusion::Elementwise,
    .cost = streaming_cost<4>,
};

const OpDef kAdamW = {
    .name = "adamw",
    .input_names = kAdamWInputs,
    .infer = infer_adamw,
    .parse_attrs = Attrs::parse<AdamWAttrs>,
    .cpu = adamw_cpu,
    .reference = adamw_reference,
    .writes = bits(0, 1, 2, 6),
    .fusion = Fusion::Elementwise,
    .cost = adamw_cost,
};

Tensor squared_norm(const Tensor& x) { return apply(kSquaredNorm, {x}, NoAttrs{})[0]; }

Tensor clip_factor(const Tensor& norm_sq, double max_norm) {
  return apply(kClipFactor, {norm_sq}, ClipFactorAttrs{max_norm})[0];
}

void adamw(const Tensor& param, const Tensor& m, const Tensor& v, const Tensor& grad,
           const Tensor& clip, const Tensor& rates, const AdamWAttrs& attrs, const Tensor& copy) {
  apply(kAdamW, {param, m, v, grad, clip, rates, copy}, attrs);
}

}  // namespace obelisk::ops
