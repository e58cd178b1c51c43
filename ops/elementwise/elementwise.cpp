#include "ops/elementwise/elementwise.h"

#include <cmath>

#include "ops/elementwise/kernels.h"
#include "ops/elementwise/strided.h"
#include "ops/layout/layout.h"
#include "ops/reduce/reduce.h"

namespace obelisk::ops {
namespace {

constexpr const char* kBinaryNames[] = {"a", "b"};
constexpr const char* kUnaryNames[] = {"x"};
constexpr const char* kGradientNames[] = {"kept", "dy"};
constexpr const char* kAccumulateNames[] = {"destination", "x"};
constexpr const char* kFillNames[] = {"destination"};

// Formulas -----------------------------------------------------------------------------------

double formula(Binary op, double a, double b) {
  switch (op) {
    case Binary::Add:
      return a + b;
    case Binary::Subtract:
      return a - b;
    case Binary::Multiply:
      return a * b;
    case Binary::Divide:
      return a / b;
    case Binary::SqrtBackward:
      return 0.5 * b / a;
    case Binary::RsqrtBackward:
      return -0.5 * b * a * a * a;
    case Binary::SquareBackward:
      return 2.0 * a * b;
    case Binary::TanhBackward:
      return b * (1.0 - a * a);
    case Binary::ReciprocalBackward:
      return -b * a * a;
    case Binary::AbsBackward:
      return a > 0 ? b : a < 0 ? -b : 0.0;
    case Binary::ReluBackward:
      return a > 0 ? b : 0.0;
    case Binary::SigmoidBackward:
      return b * a * (1.0 - a);
  }
  return 0;
}

double formula(Unary op, double x, double parameter) {
  switch (op) {
    case Unary::Negate:
      return -x;
    case Unary::Exp:
      return std::exp(x);
    case Unary::Log:
      return std::log(x);
    case Unary::Sqrt:
      return std::sqrt(x);
    case Unary::Rsqrt:
      return 1.0 / std::sqrt(x);
    case Unary::Square:
      return x * x;
    case Unary::Tanh:
      return std::tanh(x);
    case Unary::Reciprocal:
      return 1.0 / x;
    case Unary::Abs:
      return std::abs(x);
    case Unary::Relu:
      return x < 0 ? 0.0 : x;
    case Unary::Sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case Unary::Scale:
      return x * parameter;
    case Unary::AddScalar:
      return x + parameter;
  }
  return 0;
}

// Shapes -------------------------------------------------------------------------------------

void infer_binary(const InferArgs& args) {
  args.require_same_float({0, 1});
  const DimShape& longer =
      args.shape(0).size() >= args.shape(1).size() ? args.shape(0) : args.shape(1);
  const DimShape& shorter =
      args.shape(0).size() >= args.shape(1).size() ? args.shape(1) : args.shape(0);
  DimShape result = longer;
  const int missing = longer.size() - shorter.size();
  for (int i = 0; i < shorter.size(); ++i) {
    const Dim a = longer[i + missing], b = shorter[i];
    args.require(a == b || a == Dim(1) || b == Dim(1),
                 "shapes must broadcast: dims equal, or one of them 1");
    result[i + missing] = a == Dim(1) ? b : a;
  }
  args.add_output(result, args.inputs[0].dtype);
}

void infer_unary(const InferArgs& args) {
  args.require_same_float({0});
  args.add_output(args.shape(0), args.inputs[0].dtype);
}

void infer_gradient(const InferArgs& args) {
  args.require_same_float({0, 1});
  args.require(args.shape(0) == args.shape(1), "kept and dy must have the same shape");
  args.add_output(args.shape(0), args.inputs[0].dtype);
}

void infer_accumulate(const InferArgs& args) {
  args.require_same_float_into(0, {1});
  args.require(args.shape(0) == args.shape(1), "destination and x must have the same shape");
}

void infer_fill(const InferArgs& args) { args.require_same_float({0}); }

// Kernels ------------------------------------------------------------------------------------

void reference_binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& y) {
  visit_f32_f64(y.dtype(), "elementwise", [&]<typename T>() {
    const Strides a_strides = broadcast_strides(a, y.shape());
    const Strides b_strides = broadcast_strides(b, y.shape());
    for (int64_t i = 0; i < y.numel(); ++i) {
      const double left = a.data<T>()[strided_offset(i, y.shape(), a_strides)];
      const double right = b.data<T>()[strided_offset(i, y.shape(), b_strides)];
      y.data<T>()[strided_offset(i, y.shape(), y.strides())] =
          static_cast<T>(formula(op, left, right));
    }
  });
}

void reference_unary(Unary op, const Tensor& x, double parameter, const Tensor& y) {
  visit_f32_f64(y.dtype(), "elementwise", [&]<typename T>() {
    for (int64_t i = 0; i < y.numel(); ++i) {
      const double value = x.data<T>()[strided_offset(i, x.shape(), x.strides())];
      y.data<T>()[i] = static_cast<T>(formula(op, value, parameter));
    }
  });
}

template <Unary kOp>
double parameter_of(const Attrs& attrs) {
  if constexpr (kOp == Unary::Scale) return attrs.as<ScaleAttrs>().factor;
  if constexpr (kOp == Unary::AddScalar) return attrs.as<ValueAttrs>().value;
  return 0.0;
}

template <Binary kOp>
void binary_kernel(const KernelArgs& args) {
  run_binary(kOp, args.context, args.inputs[0], args.inputs[1], args.outputs[0]);
}
template <Binary kOp>
void binary_reference(const KernelArgs& args) {
  reference_binary(kOp, args.inputs[0], args.inputs[1], args.outputs[0]);
}
template <Unary kOp>
void unary_kernel(const KernelArgs& args) {
  run_unary(kOp, args.context, args.inputs[0], parameter_of<kOp>(args.attrs), args.outputs[0]);
}
template <Unary kOp>
void unary_reference(const KernelArgs& args) {
  reference_unary(kOp, args.inputs[0], parameter_of<kOp>(args.attrs), args.outputs[0]);
}

void accumulate_kernel(const KernelArgs& args) {
  if (args.inputs[0].dtype() != args.inputs[1].dtype())
    run_accumulate_bf16(args.context, args.inputs[0], args.inputs[1]);
  else
    run_binary(Binary::Add, args.context, args.inputs[0], args.inputs[1], args.inputs[0]);
}
void accumulate_reference(const KernelArgs& args) {
  reference_binary(Binary::Add, args.inputs[0], args.inputs[1], args.inputs[0]);
}

void fill_kernel(const KernelArgs& args) {
  const Tensor& destination = args.inputs[0];
  const double value = args.attrs.as<ValueAttrs>().value;
  visit_float(destination.dtype(), "fill", [&]<typename T>() {
    const T number = narrow<T>(static_cast<Compute<T>>(value));
    const StridedLoop<1> loop(destination.shape(), {destination.strides()});
    T* data = destination.data<T>();
    const int64_t step = loop.steps()[0];
    loop.parallel(args.context, [&](const std::array<int64_t, 1>& at, int64_t n) {
      if (step == 1) {
        std::fill_n(data + at[0], n, number);
      } else {
        for (int64_t i = 0; i < n; ++i) data[at[0] + i * step] = number;
      }
    });
  });
}

// Gradients ----------------------------------------------------------------------------------

Tensor apply_one(const OpDef& op, std::initializer_list<Tensor> inputs,
                 const Attrs& attrs = NoAttrs{}) {
  return apply(op, inputs, attrs)[0];
}

void add_backward(const BackwardArgs& args) {
  for (int i : {0, 1})
    if (args.needs(i))
      args.grad_inputs[i] = sum_to_shape(args.grad_outputs[0], args.inputs[i].dims());
}

void subtract_backward(const BackwardArgs& args) {
  const Tensor& dy = args.grad_outputs[0];
  if (args.needs(0)) args.grad_inputs[0] = sum_to_shape(dy, args.inputs[0].dims());
  if (args.needs(1)) args.grad_inputs[1] = negate(sum_to_shape(dy, args.inputs[1].dims()));
}

void multiply_backward(const BackwardArgs& args) {
  for (int i : {0, 1})
    if (args.needs(i))
      args.grad_inputs[i] =
          sum_to_shape(multiply(args.grad_outputs[0], args.inputs[1 - i]), args.inputs[i].dims());
}

void divide_backward(const BackwardArgs& args) {
  const Tensor da = divide(args.grad_outputs[0], args.inputs[1]);
  if (args.needs(0)) args.grad_inputs[0] = sum_to_shape(da, args.inputs[0].dims());
  if (args.needs(1))
    args.grad_inputs[1] =
        negate(sum_to_shape(multiply(da, args.outputs[0]), args.inputs[1].dims()));
}

void negate_backward(const BackwardArgs& args) {
  args.grad_inputs[0] = negate(args.grad_outputs[0]);
}
void exp_backward(const BackwardArgs& args) {
  args.grad_inputs[0] = multiply(args.grad_outputs[0], args.outputs[0]);
}
void log_backward(const BackwardArgs& args) {
  args.grad_inputs[0] = divide(args.grad_outputs[0], args.inputs[0]);
}
void scale_backward(const BackwardArgs& args) {
  args.grad_inputs[0] = apply_one(kScale, {args.grad_outputs[0]}, args.attrs);
}
void add_scalar_backward(const BackwardArgs& args) { args.grad_inputs[0] = args.grad_outputs[0]; }

enum class Keeps { Input, Output };
template <const OpDef& kGradient, Keeps kKeeps>
void kept_backward(const BackwardArgs& args) {
  const Tensor& kept = kKeeps == Keeps::Input ? args.inputs[0] : args.outputs[0];
  args.grad_inputs[0] = apply_one(kGradient, {kept, args.grad_outputs[0]});
}

// Definitions --------------------------------------------------------------------------------

Cost output_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                 const Attrs&) {
  return {static_cast<double>(product(outputs[0].shape).number()), bytes_of(inputs),
          bytes_of(outputs)};
}
Cost accumulate_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                     const Attrs&) {
  return {static_cast<double>(product(inputs[0].shape).number()), bytes_of(inputs),
          bytes_of(inputs.first(1))};
}
Cost fill_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec>, const Attrs&) {
  return {0.0, 0.0, bytes_of(inputs)};
}

template <Binary kOp>
constexpr OpDef binary_op(const char* name, Backward backward, uint32_t saved_inputs = 0,
                          uint32_t saved_outputs = 0) {
  return {.name = name,
          .input_names = kBinaryNames,
          .infer = infer_binary,
          .cpu = binary_kernel<kOp>,
          .reference = binary_reference<kOp>,
          .backward = backward,
          .saved_inputs = saved_inputs,
          .saved_outputs = saved_outputs,
          .strided_inputs = bits(0, 1),
          .fusion = Fusion::Elementwise,
          .cost = output_cost};
}

template <Binary kOp>
constexpr OpDef gradient_op(const char* name) {
  OpDef op = binary_op<kOp>(name, nullptr);
  op.input_names = kGradientNames;
  op.infer = infer_gradient;
  return op;
}

template <Unary kOp>
constexpr OpDef unary_op(const char* name, Backward backward, uint32_t saved_inputs = 0,
                         uint32_t saved_outputs = 0) {
  return {.name = name,
          .input_names = kUnaryNames,
          .infer = infer_unary,
          .cpu = unary_kernel<kOp>,
          .reference = unary_reference<kOp>,
          .backward = backward,
          .saved_inputs = saved_inputs,
          .saved_outputs = saved_outputs,
          .strided_inputs = bit(0),
          .fusion = Fusion::Elementwise,
          .cost = output_cost};
}

template <typename T>
constexpr OpDef with_attrs(OpDef op) {
  op.parse_attrs = Attrs::parse<T>;
  return op;
}

// An op whose gradient rule reads its result.
template <Unary kOp, const OpDef& kGradient>
constexpr OpDef kept_output_op(const char* name) {
  return unary_op<kOp>(name, kept_backward<kGradient, Keeps::Output>, 0, bit(0));
}
template <Unary kOp, const OpDef& kGradient>
constexpr OpDef kept_input_op(const char* name) {
  return unary_op<kOp>(name, kept_backward<kGradient, Keeps::Input>, bit(0), 0);
}

}  // namespace

constinit const OpDef kAdd = binary_op<Binary::Add>("add", add_backward);
constinit const OpDef kSubtract = binary_op<Binary::Subtract>("subtract", subtract_backward);
constinit const OpDef kMultiply =
    binary_op<Binary::Multiply>("multiply", multiply_backward, bits(0, 1));
constinit const OpDef kDivide =
    binary_op<Binary::Divide>("divide", divide_backward, bit(1), bit(0));

constinit const OpDef kSqrtBackward = gradient_op<Binary::SqrtBackward>("sqrt_backward");
constinit const OpDef kRsqrtBackward = gradient_op<Binary::RsqrtBackward>("rsqrt_backward");
constinit const OpDef kSquareBackward = gradient_op<Binary::SquareBackward>("square_backward");
constinit const OpDef kTanhBackward = gradient_op<Binary::TanhBackward>("tanh_backward");
constinit const OpDef kReciprocalBackward =
    gradient_op<Binary::ReciprocalBackward>("reciprocal_backward");
constinit const OpDef kAbsBackward = gradient_op<Binary::AbsBackward>("abs_backward");
constinit const OpDef kReluBackward = gradient_op<Binary::ReluBackward>("relu_backward");
constinit const OpDef kSigmoidBackward = gradient_op<Binary::SigmoidBackward>("sigmoid_backward");

constinit const OpDef kNegate = unary_op<Unary::Negate>("negate", negate_backward);
constinit const OpDef kExp = unary_op<Unary::Exp>("exp", exp_backward, 0, bit(0));
constinit const OpDef kLog = unary_op<Unary::Log>("log", log_backward, bit(0));
constinit const OpDef kSqrt = kept_output_op<Unary::Sqrt, kSqrtBackward>("sqrt");
constinit const OpDef kRsqrt = kept_output_op<Unary::Rsqrt, kRsqrtBackward>("rsqrt");
constinit const OpDef kSquare = kept_input_op<Unary::Square, kSquareBackward>("square");
constinit const OpDef kTanh = kept_output_op<Unary::Tanh, kTanhBackward>("tanh");
constinit const OpDef kReciprocal =
    kept_output_op<Unary::Reciprocal, kReciprocalBackward>("reciprocal");
constinit const OpDef kAbs = kept_input_op<Unary::Abs, kAbsBackward>("abs");
constinit const OpDef kRelu = kept_output_op<Unary::Relu, kReluBackward>("relu");
constinit const OpDef kSigmoid = kept_output_op<Unary::Sigmoid, kSigmoidBackward>("sigmoid");
constinit const OpDef kScale =
    with_attrs<ScaleAttrs>(unary_op<Unary::Scale>("scale", scale_backward));
constinit const OpDef kAddScalar =
    with_attrs<ValueAttrs>(unary_op<Unary::AddScalar>("add_scalar", add_scalar_backward));

constinit const OpDef kAccumulate{.name = "accumulate",
                                  .input_names = kAccumulateNames,
                                  .infer = infer_accumulate,
                                  .cpu = accumulate_kernel,
                                  .reference = accumulate_reference,
                                  .writes = bit(0),
                                  .strided_inputs = bits(0, 1),
                                  .fusion = Fusion::Elementwise,
                                  .cost = accumulate_cost};

constinit const OpDef kFill{.name = "fill",
                            .input_names = kFillNames,
                            .infer = infer_fill,
                            .parse_attrs = Attrs::parse<ValueAttrs>,
                            .cpu = fill_kernel,
                            .reference = fill_kernel,
                            .writes = bit(0),
                            .strided_inputs = bit(0),
                            .fusion = Fusion::Elementwise,
                            .cost = fill_cost};

Tensor add(const Tensor& a, const Tensor& b) { return apply_one(kAdd, {a, b}); }
Tensor subtract(const Tensor& a, const Tensor& b) { return apply_one(kSubtract, {a, b}); }
Tensor multiply(const Tensor& a, const Tensor& b) { return apply_one(kMultiply, {a, b}); }
Tensor divide(const Tensor& a, const Tensor& b) { return apply_one(kDivide, {a, b}); }

Tensor negate(const Tensor& x) { return apply_one(kNegate, {x}); }
Tensor exp(const Tensor& x) { return apply_one(kExp, {x}); }
Tensor log(const Tensor& x) { return apply_one(kLog, {x}); }
Tensor sqrt(const Tensor& x) { return apply_one(kSqrt, {x}); }
Tensor rsqrt(const Tensor& x) { return apply_one(kRsqrt, {x}); }
Tensor square(const Tensor& x) { return apply_one(kSquare, {x}); }
Tensor tanh(const Tensor& x) { return apply_one(kTanh, {x}); }
Tensor reciprocal(const Tensor& x) { return apply_one(kReciprocal, {x}); }
Tensor abs(const Tensor& x) { return apply_one(kAbs, {x}); }
Tensor relu(const Tensor& x) { return apply_one(kRelu, {x}); }
Tensor sigmoid(const Tensor& x) { return apply_one(kSigmoid, {x}); }
Tensor scale(const Tensor& x, double factor) { return apply_one(kScale, {x}, ScaleAttrs{factor}); }
Tensor add_scalar(const Tensor& x, double value) {
  return apply_one(kAddScalar, {x}, ValueAttrs{value});
}

void accumulate(const Tensor& destination, const Tensor& x) {
  apply(kAccumulate, {destination, x}, NoAttrs{});
}
void fill(const Tensor& destination, double value) {
  apply(kFill, {destination}, ValueAttrs{value});
}

Tensor sum_to_shape(const Tensor& gradient, const DimShape& shape) {
  const DimShape from = gradient.dims();
  if (from == shape) return gradient;
  const int missing = from.size() - shape.size();
  int64_t stretched = 0;
  for (int i = 0; i < from.size(); ++i)
    if (i < missing || !(shape[i - missing] == from[i])) stretched |= int64_t{1} << i;
  if (stretched == 0) return reshape(gradient, shape);
  return reshape(sum(gradient, stretched, true), shape);
}

}  // namespace obelisk::ops
