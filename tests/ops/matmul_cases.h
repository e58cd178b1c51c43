// Cases of matmul and matmul_accumulate.
#pragma once

#include "ops/matmul/matmul.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline OpCase matmul_case(std::string name, Operand a, Operand b, int64_t k,
                          ops::MatmulAttrs attrs = {}, Operand bias = absent()) {
  return {.name = std::move(name),
          .inputs = {std::move(a), std::move(b), std::move(bias)},
          .attrs = attrs,
          .reduction_length = k};
}

// All four transposes of one size, with a bias in one of them.
inline void append_transposes(std::vector<OpCase>& cases, int64_t m, int64_t n, int64_t k) {
  const std::string size = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      cases.push_back(matmul_case(
          size + (ta ? "_ta" : "") + (tb ? "_tb" : ""), normal(ta ? Shape{k, m} : Shape{m, k}),
          normal(tb ? Shape{n, k} : Shape{k, n}), k, {.transpose_a = ta, .transpose_b = tb},
          ta == tb ? normal({n}) : absent()));
}

inline OpCases matmul_cases() {
  using ops::MatmulAttrs;
  std::vector<OpCase> cases;
  // Single elements, rows and columns; register tiles whole and cut; blocks of k and of columns.
  append_transposes(cases, 1, 1, 1);
  append_transposes(cases, 1, 1, 65);
  append_transposes(cases, 1, 65, 17);
  append_transposes(cases, 65, 1, 17);
  append_transposes(cases, 3, 5, 7);
  append_transposes(cases, 6, 16, 32);
  append_transposes(cases, 13, 33, 257);
  append_transposes(cases, 17, 300, 5);
  cases.push_back(matmul_case("several_threads", normal({131, 129}), normal({257, 129}), 129,
                              {.transpose_b = true}, normal({257})));
  cases.push_back(matmul_case("several_threads_ta", normal({190, 70}), normal({190, 261}), 190,
                              {.transpose_a = true}));
  // Sums of a bf16 result that wait for the next block of k, more than are kept at once.
  cases.push_back(
      matmul_case("many_rows_deep", normal({500, 258}), normal({258, 17}), 258, {}, normal({17})));
  cases.push_back(matmul_case("row_several_threads", normal({1, 300}), normal({1500, 300}), 300,
                              {.transpose_b = true}));
  cases.push_back(matmul_case("large_mean", normal({9, 70}, 1.0, 100.0),
                              normal({11, 70}, 1.0, 100.0), 70, {.transpose_b = true}));
  cases.back().magnitude = 7e5;

  cases.push_back(matmul_case("one_row_1d", normal({7}), normal({5, 7}), 7, {.transpose_b = true},
                              normal({5})));
  cases.push_back(matmul_case("one_row_1d_plain", normal({7}), normal({7, 5}), 7));
  cases.push_back(matmul_case("leading_fold", normal({2, 3, 4, 5}), normal({7, 5}), 5,
                              {.transpose_b = true}, normal({7})));
  cases.push_back(matmul_case("leading_of_a_transposed", normal({3, 5, 4}), normal({5, 7}), 5,
                              {.transpose_a = true}));
  cases.push_back(matmul_case("leading_of_b", normal({4, 5}), normal({3, 5, 7}), 5));
  cases.push_back(matmul_case("leading_of_b_both_transposed", normal({5, 4}), normal({3, 2, 7, 5}),
                              5, {.transpose_a = true, .transpose_b = true}));
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      const std::string suffix = std::string(ta ? "_ta" : "") + (tb ? "_tb" : "");
      const Operand a = normal(ta ? Shape{2, 3, 5, 4} : Shape{2, 3, 4, 5});
      const Operand b = normal(tb ? Shape{2, 3, 7, 5} : Shape{2, 3, 5, 7});
      cases.push_back(matmul_case("batch" + suffix, a, b, 5, {.transpose_a = ta, .transpose_b = tb},
                                  normal({7})));
      cases.push_back(matmul_case("batch_sum" + suffix, a, b, 30,
                                  {.transpose_a = ta, .transpose_b = tb, .sum_leading = true}));
    }
  cases.push_back(matmul_case("batch_of_rows", normal({9, 1, 6}), normal({9, 11, 6}), 6,
                              {.transpose_b = true}));

  cases.push_back(matmul_case("row_gaps", with_row_gap(normal({7, 9}), 3),
                              with_row_gap(normal({5, 9}), 2), 9, {.transpose_b = true}));
  cases.push_back(matmul_case("row_gaps_batch", with_row_gap(normal({2, 9, 7}), 3),
                              with_row_gap(normal({2, 9, 5}), 2), 9, {.transpose_a = true}));

  cases.push_back(matmul_case("no_rows", normal({0, 5}), normal({5, 7}), 5, {}, normal({7})));
  cases.push_back(matmul_case("no_columns", normal({3, 5}), normal({5, 0}), 5));
  cases.push_back(matmul_case("no_depth", normal({3, 0}), normal({0, 7}), 0, {}, normal({7})));
  cases.push_back(
      matmul_case("no_depth_no_bias", normal({3, 0}), normal({7, 0}), 0, {.transpose_b = true}));
  cases.push_back(matmul_case("no_batch", normal({0, 3, 5}), normal({0, 5, 7}), 5));
  cases.push_back(
      matmul_case("no_batch_sum", normal({0, 3, 5}), normal({0, 5, 7}), 5, {.sum_leading = true}));
  cases.push_back(
      matmul_case("no_leading_rows", normal({2, 0, 5}), normal({7, 5}), 5, {.transpose_b = true}));
  return {&ops::kMatmul, std::move(cases)};
}

inline OpCases matmul_accumulate_cases() {
  std::vector<OpCase> cases;
  auto add = [&](std::string name, Operand destination, Operand a, Operand b, int64_t k,
                 ops::MatmulAttrs attrs = {}) {
    destination.is_sum = cases.size() % 2 == 1;  // one case with each kind of destination
    cases.push_back({.name = std::move(name),
                     .inputs = {std::move(destination), std::move(a), std::move(b)},
                     .attrs = attrs,
                     .reduction_length = k + 1});
  };
  add("plain", normal({4, 7}), normal({4, 5}), normal({5, 7}), 5);
  add("one", normal({1, 1}), normal({1, 3}), normal({3, 1}), 3);
  add("row", normal({1, 65}), normal({1, 17}), normal({17, 65}), 17);
  add("row_transposed", normal({1, 65}), normal({1, 17}), normal({65, 17}), 17,
      {.transpose_b = true});
  add("column", normal({65, 1}), normal({17, 65}), normal({17, 1}), 17, {.transpose_a = true});
  add("deep", normal({7, 33}), normal({600, 7}), normal({600, 33}), 600, {.transpose_a = true});
  add("both_transposed", normal({7, 18}), normal({33, 7}), normal({18, 33}), 33,
      {.transpose_a = true, .transpose_b = true});
  add("several_threads", normal({128, 65}), normal({520, 128}), normal({520, 65}), 520,
      {.transpose_a = true});
  add("batch", normal({2, 3, 4, 7}), normal({2, 3, 4, 5}), normal({2, 3, 5, 7}), 5);
  add("batch_sum_folds", normal({4, 7}), normal({2, 3, 5, 4}), normal({2, 3, 5, 7}), 30,
      {.transpose_a = true, .sum_leading = true});
  add("batch_sum", normal({4, 7}), normal({6, 4, 5}), normal({6, 7, 5}), 30,
      {.transpose_b = true, .sum_leading = true});
  add("row_gaps", normal({4, 7}), with_row_gap(normal({9, 4}), 1), with_row_gap(normal({9, 7}), 2),
      9, {.transpose_a = true});
  add("no_depth", normal({4, 7}), normal({4, 0}), normal({0, 7}), 0);
  add("no_batch_sum", normal({4, 7}), normal({0, 4, 5}), normal({0, 5, 7}), 5,
      {.sum_leading = true});
  add("no_rows", normal({0, 7}), normal({0, 5}), normal({5, 7}), 5);
  return {&ops::kMatmulAccumulate, std::move(cases)};
}

}  // namespace obelisk
