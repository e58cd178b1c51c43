#include "ops/gelu/gelu.h"

#include <cmath>

namespace obelisk::ops {
namespace {

constexpr double kSqrtHalf = 0.7071067811865476;
constexpr double kSqrtTwoOverPi = 0.7978845608028654;
constexpr double kInverseSqrtTwoPi = 0.3989422804014327;
constexpr double kCubic = 0.044715;

void infer(const InferArgs& args) {
  args.require_same_float({0});
  args.add_output(args.shape(0), args.inputs[0].dtype);
}

void infer_backward(const InferArgs& args) {
  args.require_same_float({0, 1});
  args.require(args.shape(0) == args.shape(1), "x and dy must have the same shape");
  args.add_output(args.shape(0), args.inputs[0].dtype);
}

double value(double x, GeluForm form) {
  if (form == GeluForm::Erf) return x * 0.5 * std::erfc(-x * kSqrtHalf);
  return x * 0.5 * (1.0 + std::tanh(kSqrtTwoOverPi * (x + kCubic * x * x * x)));
}

double derivative(double x, GeluForm form) {
  if (form == GeluForm::Erf)
    return 0.5 * std::erfc(-x * kSqrtHalf) + x * kInverseSqrtTwoPi * std::exp(-0.5 * x * x);
  const double th = std::tanh(kSqrtTwoOverPi * (x + kCubic * x * x * x));
  return 0.5 * (1.0 + th) +
         0.5 * x * (1.0 - th * th) * kSqrtTwoOverPi * (1.0 + 3.0 * kCubic * x * x);
}

void gelu_reference(const KernelArgs& args) {
  const GeluForm form = args.attrs.as<GeluAttrs>().form;
  visit_f32_f64(args.inputs[0].dtype(), "gelu", [&]<typename T>() {
    const T* x = args.inputs[0].data<T>();
    T* y = args.outputs[0].data<T>();
    for (int64_t i = 0; i < args.inputs[0].numel(); ++i) y[i] = static_cast<T>(value(x[i], form));
  });
}

void gelu_backward_reference(const KernelArgs& args) {
  const GeluForm form = args.attrs.as<GeluAttrs>().form;
  visit_f32_f64(args.inputs[0].dtype(), "gelu_backward", [&]<typename T>() {
    const T* x = args.inputs[0].data<T>();
    const T* dy = args.inputs[1].data<T>();
    T* dx = args.outputs[0].data<T>();
    for (int64_t i = 0; i < args.inputs[0].numel(); ++i)
      dx[i] = static_cast<T>(dy[i] * derivative(x[i], form));
  });
}

void backward(const BackwardArgs& args) {
  args.grad_inputs[0] = apply(kGeluBackward, {args.inputs[0], args.grad_outputs[0]}, args.attrs)[0];
}

constexpr const char* kInputNames[] = {"x"};
constexpr const char* kBackwardInputNames[] = {"x", "dy"};

}  // namespace

const OpDef kGelu = {
    .name = "gelu",
    .input_names = kInputNames,
    .infer = infer,
    .parse_attrs = Attrs::parse<GeluAttrs>,
    .cpu = gelu_cpu,
    .reference = gelu_reference,
    .backward = backward,
    .saved_inputs = bit(0),
    .fusion = Fusion::Elementwise,
    .cost = streaming_cost<30>,
};

const OpDef kGeluBackward = {
    .name = "gelu_backward",
    .input_names = kBackwardInputNames,
    .infer = infer_backward,
    .parse_attrs = Attrs::parse<GeluAttrs>,
    .cpu = gelu_backward_cpu,
    .reference = gelu_backward_reference,
    .fusion = Fusion::Elementwise,
    .cost = streaming_cost<34>,
};

Tensor gelu(const Tensor& x, GeluForm form) { return apply(kGelu, {x}, GeluAttrs{form})[0]; }

}  // namespace obelisk::ops
