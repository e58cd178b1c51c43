#pragma once

#include "ops/gelu/gelu.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline std::vector<OpCase> gelu_shape_cases(bool with_dy) {
  std::vector<OpCase> cases;
  const auto add = [&](std::string name, Operand x) {
    for (ops::GeluForm form : {ops::GeluForm::Erf, ops::GeluForm::Tanh}) {
      OpCase one = {.name = name + (form == ops::GeluForm::Erf ? "Erf" : "Tanh"),
                    .inputs = {x},
                    .attrs = ops::GeluAttrs{form}};
      if (with_dy) one.inputs.push_back(normal(x.shape));
      cases.push_back(one);
    }
  };
  add("Scalar", normal({}));
  add("One", normal({1, 1}));
  add("Empty", normal({3, 0}));
  for (int64_t width : {3, 5, 7, 8, 16, 17, 64, 65})
    add("Width" + std::to_string(width), normal({2, width}, 2.0));
  add("Wide", normal({50, 20}, 10.0));
  add("LargeMean", normal({33}, 1.0, 100.0));
  add("Tails", values({11}, {0, 1e-3, -1e-3, 6, -6, 12.5, -12.5, 30, -30, 1e10, -1e10}));
  add("Threads", normal({3, 13001}));
  return cases;
}

inline OpCases gelu_cases() { return {&ops::kGelu, gelu_shape_cases(false)}; }
inline OpCases gelu_backward_cases() { return {&ops::kGeluBackward, gelu_shape_cases(true)}; }

}  // namespace obelisk
