// The vector kernels of the elementwise family, one entry for all of its members.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

enum class Binary : uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  // (kept, dy) -> dx; see elementwise.h.
  SqrtBackward,
  RsqrtBackward,
  SquareBackward,
  TanhBackward,
  ReciprocalBackward,
  AbsBackward,
  ReluBackward,
  SigmoidBackward,
};
inline constexpr int kNumBinary = 12;

enum class Unary : uint8_t {
  Negate,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Square,
  Tanh,
  Reciprocal,
  Abs,
  Relu,
  Sigmoid,
  Scale,      // x * parameter
  AddScalar,  // x + parameter
};
inline constexpr int kNumUnary = 13;

// y = a (op) b with broadcasting to y's shape; y may be a or b themselves.
void run_binary(Binary op, ExecContext& context, const Tensor& a, const Tensor& b, const Tensor& y);
// destination (f32) += x (bf16), shapes alike.
void run_accumulate_bf16(ExecContext& context, const Tensor& destination, const Tensor& x);
// y = op(x), shapes alike.
void run_unary(Unary op, ExecContext& context, const Tensor& x, double parameter, const Tensor& y);

}  // namespace obelisk::ops
