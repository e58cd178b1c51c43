// One list of cases an op: it serves parity of the vector kernel with the scalar reference, the
// gradient check in f64, fused against decomposed, guard bytes round every buffer, unaligned views,
// thread counts and the benchmark.
//
// tests/ops/<op>_cases.h defines `inline OpCases <op>_cases()`; tests/ops/all_cases.cpp lists them
// all; op_harness_test.cpp runs every check over every case, and fails when an OpDef of ops::all()
// has no cases.
#pragma once

#include <string>
#include <vector>

#include "framework/op/op_def.h"

namespace obelisk {

// How one operand is filled. Values are f32-exact, so that f32 and f64 runs see the same numbers.
struct Operand {
  enum class Fill { Normal, Positive, Ids, Absent, Values };
  Fill fill = Fill::Normal;
  Shape shape;
  double scale = 1.0;          // Normal, Positive: standard deviation or magnitude
  double mean = 0.0;           // Normal: added afterwards
  int64_t bound = 0;           // Ids: i64 in [0, bound)
  std::vector<double> values;  // Values: floats; integers when `dtype` says I64
  DType dtype = DType::F64;    // F64 stands for "the float type of the run"
  bool always_f64 = false;     // f64 in f32 runs as well: rates
  bool is_sum = false;         // f32 in bf16 runs: statistics, gradients of weights
  // Rows of the last dim lie this many elements further apart than their length (strided_inputs
  // only).
  int64_t row_gap = 0;
};

Operand normal(Shape shape, double scale = 1.0, double mean = 0.0);
Operand positive(Shape shape, double scale = 1.0);  // scale * (0.5 + uniform)
Operand ids(Shape shape, int64_t bound);
Operand absent();
Operand values(Shape shape, std::vector<double> values);
Operand doubles(Shape shape, std::vector<double> values);  // f64 in every run
Operand integers(Shape shape, std::vector<double> values);
Operand with_row_gap(Operand operand, int64_t gap);
Operand as_sum(Operand operand);
Operand in_bf16(Operand operand);  // in every run

struct OpCase {
  std::string name;  // CamelCase or snake_case, unique within the op
  std::vector<Operand> inputs;
  Attrs attrs = NoAttrs{};
  // Longest sum behind one output element; error bounds grow with it.
  int64_t reduction_length = 1;
  // Size of the numbers that cancel, where it exceeds the outputs' own (a large-mean input): bounds
  // grow with it.
  double magnitude = 1.0;
  // Of the outputs that carry gradient; empty means all float outputs. Statistics (mean, rstd, lse)
  // are left out.
  std::vector<int> gradient_outputs = {};
  // Operands to differentiate; empty means all Normal and Positive ones.
  std::vector<int> gradient_inputs = {};
  // False: a number rounded to bf16 on the way would drown the result.
  bool in_bf16 = true;
};

// How an op takes bf16, which says how far its results may lie from those in f64.
enum class Bf16 {
  None,           // refuses it
  RoundedOnce,    // computes in f32 and rounds the result
  RoundedInside,  // rounds something on the way as well
};

struct OpCases {
  const OpDef* op;
  std::vector<OpCase> cases;
  Bf16 bf16 = Bf16::RoundedOnce;
};

// Every op's cases, in the order of ops::all().
const std::vector<OpCases>& all_op_cases();

}  // namespace obelisk
