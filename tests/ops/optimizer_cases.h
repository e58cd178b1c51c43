#pragma once

#include "ops/optimizer/optimizer.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline OpCases squared_norm_cases() {
  OpCases cases{&ops::kSquaredNorm, {}, Bf16::None};
  for (int64_t n : {0, 1, 3, 7, 16, 33, 1000, 40000})
    cases.cases.push_back(
        {.name = "n" + std::to_string(n), .inputs = {normal({n})}, .reduction_length = n / 64 + 4});
  cases.cases.push_back(
      {.name = "large_mean", .inputs = {normal({5000}, 1.0, 1e4)}, .reduction_length = 100});
  return cases;
}

inline OpCases clip_factor_cases() {
  auto with_limit = [](const char* name, double norm_sq, double max_norm) {
    return OpCase{
        .name = name, .inputs = {doubles({}, {norm_sq})}, .attrs = ops::ClipFactorAttrs{max_norm}};
  };
  return {&ops::kClipFactor,
          {with_limit("clips", 4.0, 1.0), with_limit("leaves", 0.25, 1.0),
           with_limit("off", 1e30, 0.0), with_limit("zero", 0.0, 1.0)}};
}

inline OpCases adamw_cases() {
  OpCases cases{&ops::kAdamW, {}, Bf16::None};
  auto with = [](const std::string& name, int64_t n, double rate, double step, double clip,
                 const ops::AdamWAttrs& attrs) {
    return OpCase{.name = name,
                  .inputs = {normal({n}), normal({n}, 0.1), positive({n}, 0.01), normal({n}, 0.1),
                             doubles({}, {clip}), doubles({2}, {rate, step}), absent()},
                  .attrs = attrs,
                  .reduction_length = 8};
  };
  const ops::AdamWAttrs usual{.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1};
  for (int64_t n : {0, 1, 5, 8, 31, 64, 20000})
    cases.cases.push_back(with("n" + std::to_string(n), n, 0.0078125, 3, 1.0, usual));
  for (int64_t n : {0, 1, 31, 20000}) {
    cases.cases.push_back(with("copied_n" + std::to_string(n), n, 0.0078125, 3, 1.0, usual));
    cases.cases.back().inputs.back() = in_bf16(normal({n}));
  }
  cases.cases.push_back(with("first_step", 100, 0.0078125, 1, 0.25, usual));
  cases.cases.push_back(with("no_decay", 100, 0.0078125, 10, 1.0, {.weight_decay = 0.0}));
  cases.cases.push_back(with("late_step", 100, 0.0078125, 100000, 1.0, usual));
  return cases;
}

}  // namespace obelisk
