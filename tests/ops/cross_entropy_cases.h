#pragma once

#include "ops/cross_entropy/cross_entropy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "tests/ops/op_case.h"

namespace obelisk {

// Ids in [-1, vocabulary): every seventh row is left out.
inline Operand targets(int64_t rows, int64_t vocabulary) {
  std::vector<double> list;
  for (int64_t n = 0; n < rows; ++n)
    list.push_back(n % 7 == 3 ? -1.0 : static_cast<double>((n * 31 + 5) % vocabulary));
  return integers({rows}, list);
}

inline OpCases cross_entropy_cases() {
  OpCases cases{&ops::kCrossEntropy, {}};
  auto add = [&](const std::string& name, int64_t rows, int64_t vocabulary, double scale,
                 double mean) {
    cases.cases.push_back(
        {.name = name,
         .inputs = {normal({rows, vocabulary}, scale, mean), targets(rows, vocabulary)},
         .reduction_length = rows + vocabulary,
         .magnitude = std::max(1.0, std::abs(mean)),
         .gradient_outputs = {0}});
  };
  add("no_rows", 0, 7, 1, 0);
  add("one_row", 1, 7, 1, 0);
  add("one_class", 5, 1, 1, 0);
  for (int64_t vocabulary : {2, 3, 8, 17, 65, 256})
    add("v" + std::to_string(vocabulary), 9, vocabulary, 1, 0);
  add("many_rows", 1000, 65, 2, 0);
  add("wide", 5, 5003, 1, 0);
  add("confident", 9, 65, 30, 0);
  add("large_mean", 9, 65, 1, 1e4);
  return cases;
}

inline OpCases cross_entropy_backward_cases() {
  OpCases cases{&ops::kCrossEntropyBackward, {}};
  for (const auto& [rows, vocabulary] :
       {std::pair<int64_t, int64_t>{0, 5}, {1, 1}, {3, 8}, {9, 65}, {300, 130}})
    cases.cases.push_back(
        {.name = fmt::format("n{}_v{}", rows, vocabulary),
         .inputs = {normal({rows, vocabulary}), targets(rows, vocabulary),
                    as_sum(positive({rows}, 4)), as_sum(positive({rows}, 8)), as_sum(normal({}))}});
  return cases;
}

inline OpCases linear_cross_entropy_cases() {
  OpCases cases{&ops::kLinearCrossEntropy, {}, Bf16::RoundedInside};
  auto add = [&](const std::string& name, int64_t rows, int64_t width, int64_t vocabulary,
                 bool with_gradient) {
    OpCase op_case{
        .name = name,
        .inputs = {normal({rows, width}), normal({vocabulary, width}), targets(rows, vocabulary)},
        .attrs = ops::LinearCrossEntropyAttrs{with_gradient},
        .reduction_length = rows + width + vocabulary,
        .magnitude = 4,
        .gradient_outputs = {0}};
    cases.cases.push_back(op_case);
  };
  add("no_rows", 0, 4, 7, true);
  add("ones", 1, 1, 1, true);
  for (const auto& [rows, width, vocabulary] :
       {std::array<int64_t, 3>{3, 5, 7}, {17, 16, 65}, {64, 33, 129}, {5, 8, 1000}})
    add(fmt::format("n{}_d{}_v{}", rows, width, vocabulary), rows, width, vocabulary, true);
  // Several chunks: more rows than one holds.
  add("chunks", 1100, 6, 11, true);
  return cases;
}

inline OpCases scaled_accumulate_cases() {
  OpCases cases{&ops::kScaledAccumulate, {}, Bf16::None};
  for (int64_t n : {0, 1, 3, 8, 29, 40000})
    cases.cases.push_back(
        {.name = "n" + std::to_string(n), .inputs = {normal({n}), normal({n}), normal({})}});
  cases.cases.push_back({.name = "matrix", .inputs = {normal({5, 7}), normal({5, 7}), normal({})}});
  return cases;
}

}  // namespace obelisk
