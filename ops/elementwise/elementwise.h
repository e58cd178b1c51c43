// Elementwise arithmetic: one family from two templates, binary with broadcasting and unary.
//
// Binary (numpy broadcasting: shapes are aligned at their last dims, a missing dim or a dim of size
// 1 is repeated): add, subtract, multiply, divide. Unary: negate, exp, log (natural), sqrt, rsqrt
// (1 / sqrt x), square, tanh, reciprocal, abs, relu (max(x, 0)), sigmoid (1 / (1 + exp(-x))),
// scale (x * factor), add_scalar (x + value). In place: accumulate (destination += x), fill.
//
// dtypes f32, bf16 and f64, alike among operands; accumulate also adds a bf16 x to an f32
// destination. bf16 is computed in f32 and rounded once. Operands may be strided (rows of the last
// dim dense); results are new contiguous tensors. NaN in gives NaN out. Values at the edges of a
// domain are IEEE's: log 0 = -inf, log(-1) = NaN, 1 / 0 = inf.
//
// Gradients, y the result and g its gradient; over a broadcast dim the gradient is summed:
//   add g, g | subtract g, -g | multiply g b, g a | divide g / b, -(g / b) y
//   exp g y | log g / x | sqrt g / (2 y) | rsqrt -g y^3 / 2 | square 2 g x | tanh g (1 - y^2)
//   reciprocal -g y^2 | abs g sign(x), 0 at 0 | relu g where y > 0 | sigmoid g y (1 - y)
//   scale g factor | add_scalar g
//
// Errors (ShapeError): "add: shapes must broadcast: dims equal, or one of them 1; ...",
// "accumulate: destination and x must have the same shape; ...", other dtypes.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct ScaleAttrs {
  double factor = 1.0;
  static constexpr auto fields() { return std::tuple{field("factor", &ScaleAttrs::factor)}; }
};
struct ValueAttrs {
  double value = 0.0;
  static constexpr auto fields() { return std::tuple{field("value", &ValueAttrs::value)}; }
};

// Inputs a, b; NoAttrs.
extern const OpDef kAdd, kSubtract, kMultiply, kDivide;
// Input x; NoAttrs.
extern const OpDef kNegate, kExp, kLog, kSqrt, kRsqrt, kSquare, kTanh, kReciprocal, kAbs, kRelu,
    kSigmoid;
extern const OpDef kScale;      // input x; ScaleAttrs
extern const OpDef kAddScalar;  // input x; ValueAttrs
// Inputs destination (written in place, contiguous or strided), x of the same shape; no output.
extern const OpDef kAccumulate;
extern const OpDef kFill;  // input destination, written in place; ValueAttrs; no output

// Gradient rules in one pass: (kept, dy) -> dx, where kept is the forward's x (square, abs) or y
// (the others). Shapes equal, NoAttrs.
extern const OpDef kSqrtBackward, kRsqrtBackward, kSquareBackward, kTanhBackward,
    kReciprocalBackward, kAbsBackward, kReluBackward, kSigmoidBackward;

Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);

Tensor negate(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor scale(const Tensor& x, double factor);
Tensor add_scalar(const Tensor& x, double value);

void accumulate(const Tensor& destination, const Tensor& x);
void fill(const Tensor& destination, double value);

// Gradient of a broadcast operand: `gradient` summed over the dims that broadcasting stretched.
Tensor sum_to_shape(const Tensor& gradient, const DimShape& shape);

}  // namespace obelisk::ops
