#pragma once

#include "ops/elementwise/elementwise.h"
#include "tests/ops/op_case.h"

namespace obelisk {

// Magnitudes in [0.5, 1.5), signs alternating in threes: away from the kink of abs and relu.
inline Operand away_from_zero(Shape shape) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    const double magnitude = 0.5 + static_cast<double>(i * 37 % 64) / 64.0;
    numbers.push_back(i / 3 % 2 == 0 ? magnitude : -magnitude);
  }
  return values(shape, numbers);
}

// More than one thread takes part from 20480 elements on.
inline std::vector<OpCase> binary_cases(Operand (*second)(Shape)) {
  auto b = second;
  return {
      {.name = "Scalars", .inputs = {normal({}), b({})}},
      {.name = "One", .inputs = {normal({1}), b({1, 1})}},
      {.name = "Width3", .inputs = {normal({2, 3}), b({2, 3})}},
      {.name = "Width17", .inputs = {normal({5, 17}), b({5, 17})}},
      {.name = "Width64", .inputs = {normal({4, 64}), b({4, 64})}},
      {.name = "Empty", .inputs = {normal({0, 5}), b({0, 5})}},
      {.name = "EmptyAgainstRow", .inputs = {normal({0, 5}), b({5})}},
      {.name = "EmptyAgainstOne", .inputs = {normal({2, 0}), b({2, 1})}},
      {.name = "LargeMean", .inputs = {normal({3, 33}, 1.0, 1e4), b({3, 33})}, .magnitude = 1e4},
      {.name = "Row", .inputs = {normal({4, 3, 65}), b({65})}, .reduction_length = 12},
      {.name = "RowFirst", .inputs = {normal({7}), b({5, 7})}, .reduction_length = 5},
      {.name = "Scalar", .inputs = {normal({3, 19}), b({})}, .reduction_length = 57},
      {.name = "ScalarFirst", .inputs = {normal({1}), b({2, 19})}, .reduction_length = 38},
      {.name = "Column", .inputs = {normal({6, 9}), b({6, 1})}, .reduction_length = 9},
      {.name = "Outer", .inputs = {normal({5, 1}), b({1, 7})}, .reduction_length = 7},
      {.name = "Middle", .inputs = {normal({2, 1, 5}), b({2, 4, 5})}, .reduction_length = 4},
      {.name = "Mixed", .inputs = {normal({2, 3, 1, 5}), b({4, 1})}, .reduction_length = 30},
      {.name = "Large", .inputs = {normal({3, 7001}), b({3, 7001})}},
      {.name = "LargeRows", .inputs = {normal({343, 65}), b({65})}, .reduction_length = 343},
      {.name = "Strided",
       .inputs = {with_row_gap(normal({3, 2, 9}), 4), with_row_gap(b({2, 9}), 1)},
       .reduction_length = 3},
      {.name = "StridedColumn",
       .inputs = {with_row_gap(normal({300, 1}), 3), with_row_gap(b({300, 1}), 1)}},
  };
}

inline std::vector<OpCase> unary_cases(Operand (*operand)(Shape), const Attrs& attrs = NoAttrs{}) {
  std::vector<OpCase> cases{
      {.name = "Scalar", .inputs = {operand({})}},
      {.name = "One", .inputs = {operand({1, 1})}},
      {.name = "Empty", .inputs = {operand({3, 0})}},
      {.name = "Width3", .inputs = {operand({1, 3})}},
      {.name = "Width5", .inputs = {operand({2, 5})}},
      {.name = "Width32", .inputs = {operand({32})}},
      {.name = "Width65", .inputs = {operand({3, 65})}},
      {.name = "Large", .inputs = {operand({5, 4099})}},
      {.name = "Strided", .inputs = {with_row_gap(operand({2, 3, 7}), 5)}},
      {.name = "StridedColumn", .inputs = {with_row_gap(operand({270, 1}), 2)}},
  };
  for (OpCase& op_case : cases) {
    op_case.attrs = attrs;
    op_case.gradient_inputs = {0};
  }
  return cases;
}

inline std::vector<OpCase> in_place_cases(bool with_operand, const Attrs& attrs = NoAttrs{}) {
  std::vector<OpCase> cases;
  auto add = [&](const char* name, const Operand& destination, const Operand& x) {
    std::vector<Operand> inputs{destination};
    inputs[0].is_sum = cases.size() % 2 == 1;  // one case with each kind of destination
    if (with_operand) inputs.push_back(x);
    cases.push_back({.name = name, .inputs = inputs, .attrs = attrs});
  };
  add("Scalar", normal({}), normal({}));
  add("One", normal({1}), normal({1}));
  add("Empty", normal({0, 4}), normal({0, 4}));
  add("Width3", normal({5, 3}), normal({5, 3}));
  add("Width17", normal({17}), normal({17}));
  add("LargeMean", normal({3, 40}, 1.0, 1e4), normal({3, 40}));
  add("Large", normal({21003}), normal({21003}));
  add("Strided", with_row_gap(normal({4, 9}), 3), normal({4, 9}));
  add("StridedColumn", with_row_gap(normal({9, 1}), 3), with_row_gap(normal({9, 1}), 1));
  return cases;
}

inline std::vector<OpCases> elementwise_cases() {
  auto any = +[](Shape shape) { return normal(shape); };
  auto above_zero = +[](Shape shape) { return positive(shape); };
  auto no_kink = +[](Shape shape) { return away_from_zero(shape); };
  std::vector<OpCase> gradient = unary_cases(any);
  for (OpCase& op_case : gradient) op_case.inputs.insert(op_case.inputs.begin(), op_case.inputs[0]);
  std::vector<OpCase> positive_gradient = gradient;
  for (OpCase& op_case : positive_gradient) op_case.inputs[0].fill = Operand::Fill::Positive;
  return {
      {&ops::kAdd, binary_cases(any)},
      {&ops::kSubtract, binary_cases(any)},
      {&ops::kMultiply, binary_cases(any)},
      {&ops::kDivide, binary_cases(above_zero)},
      {&ops::kNegate, unary_cases(any)},
      {&ops::kExp, unary_cases(any)},
      {&ops::kLog, unary_cases(above_zero)},
      {&ops::kSqrt, unary_cases(above_zero)},
      {&ops::kRsqrt, unary_cases(above_zero)},
      {&ops::kSquare, unary_cases(any)},
      {&ops::kTanh, unary_cases(any)},
      {&ops::kReciprocal, unary_cases(above_zero)},
      {&ops::kAbs, unary_cases(no_kink)},
      {&ops::kRelu, unary_cases(no_kink)},
      {&ops::kSigmoid, unary_cases(any)},
      {&ops::kScale, unary_cases(any, ops::ScaleAttrs{-0.625})},
      {&ops::kAddScalar, unary_cases(any, ops::ValueAttrs{3.25})},
      {&ops::kAccumulate, in_place_cases(true)},
      {&ops::kFill, in_place_cases(false, ops::ValueAttrs{-1.5})},
      {&ops::kSqrtBackward, positive_gradient},
      {&ops::kRsqrtBackward, positive_gradient},
      {&ops::kSquareBackward, gradient},
      {&ops::kTanhBackward, gradient},
      {&ops::kReciprocalBackward, positive_gradient},
      {&ops::kAbsBackward, gradient},
      {&ops::kReluBackward, gradient},
      {&ops::kSigmoidBackward, gradient},
  };
}

}  // namespace obelisk
