// Running an OpCase: fills its operands, applies a kernel of the op, and brings the results home as
// doubles.
#pragma once

#include <vector>

#include "tests/ops/op_case.h"

namespace obelisk {

// A result copied off the context, widened to double.
struct Values {
  Shape shape;
  DType dtype;
  std::vector<double> numbers;
};
Values to_values(const Tensor& tensor);

// Operands of a case on the current context; floats in `dtype`. The same (case, seed) gives the
// same numbers for every dtype, rounded to those that `numbers` has, `dtype` itself by default.
TensorList make_inputs(const OpCase& op_case, DType dtype, uint64_t seed = 1);
TensorList make_rounded_inputs(const OpCase& op_case, DType dtype, DType numbers,
                               uint64_t seed = 1);

enum class Which { Kernel, Reference, Decompose };

// All outputs, followed by the operands that the op writes in place. `numbers`: of the operands.
std::vector<Values> run_forward(const OpDef& op, const OpCase& op_case, DType dtype, Which which);
std::vector<Values> run_forward(const OpDef& op, const OpCase& op_case, DType dtype, DType numbers,
                                Which which);

// True when the case's operands hold floats that this op takes as f32 and f64 alike.
bool has_float_operand(const OpCase& op_case);

// Indices of operands to differentiate and of outputs to start from.
std::vector<int> gradient_inputs(const OpCase& op_case);
std::vector<int> gradient_outputs(const OpCase& op_case, const TensorList& outputs);

// L = sum over gradient outputs of <cotangent, output>, cotangents drawn from a fixed stream; and
// dL/d(each gradient input) through autograd. `perturb`, when not empty, is added to the gradient
// inputs (flattened, one after another).
struct GradientRun {
  double objective = 0;
  std::vector<Values> gradients;
};
struct GradientOptions {
  Which which = Which::Kernel;
  DType dtype = DType::F64;
  DType numbers = DType::F64;  // what the operands' values are rounded to
  bool backward = true;
  std::vector<std::vector<double>> perturb = {};
  double initial_gradient = 0;  // not 0: gradients accumulate into buffers that hold it
  int only_input = -1;          // differentiate this operand alone
};
GradientRun run_gradient(const OpDef& op, const OpCase& op_case, const GradientOptions& options);

}  // namespace obelisk
