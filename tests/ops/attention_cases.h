#pragma once

#include <cmath>

#include "ops/attention/attention.h"
#include "tests/ops/op_case.h"

namespace obelisk {

struct AttentionShape {
  const char* name;
  int64_t batch, queries, keys, heads, kv_heads, width;
  ops::AttentionAttrs attrs = {};
  int64_t row_gap = 0;
  double mean = 0.0;

  Operand query(double center = 0.0) const {
    return with_row_gap(normal({batch, queries, heads, width}, 1.0, center), row_gap);
  }
  Operand key(double center = 0.0) const {
    return with_row_gap(normal({batch, keys, kv_heads, width}, 1.0, center), row_gap);
  }
  // Sums over keys, queries and the width of a head, and the exponent of a score.
  int64_t reduction_length() const {
    return std::max({keys, queries * heads / std::max<int64_t>(1, kv_heads), width});
  }
  double magnitude() const { return std::max(8.0, 4.0 * mean * mean * static_cast<double>(width)); }
};

inline std::vector<AttentionShape> attention_shapes() {
  constexpr ops::AttentionAttrs kCausal{true, 0.0};
  return {
      {"One", 1, 1, 1, 1, 1, 1},
      {"OneCausal", 1, 1, 1, 1, 1, 1, kCausal},
      {"Width1", 1, 9, 9, 2, 2, 1, kCausal},
      {"Width3", 2, 7, 5, 1, 1, 3},
      {"Width5Causal", 2, 7, 7, 3, 3, 5, kCausal},
      {"Width7Gap", 1, 17, 17, 2, 2, 7, kCausal, 3},
      {"Width8Scaled", 1, 16, 16, 2, 2, 8, {true, 0.7}},
      {"Width16", 1, 33, 33, 2, 2, 16, kCausal},
      {"Width17Grouped", 2, 20, 20, 4, 2, 17, kCausal},
      {"Width65", 1, 6, 6, 1, 1, 65},
      {"GroupedAll", 1, 5, 11, 6, 1, 4, {}, 5},
      {"MoreKeys", 1, 3, 10, 1, 1, 4, kCausal},
      {"LastQueryOnly", 2, 1, 120, 2, 1, 8, kCausal},
      {"ExactBlock", 1, 96, 96, 1, 1, 4, kCausal},
      {"Blocks", 1, 65, 200, 2, 2, 6, kCausal, 1},
      {"BlocksFull", 1, 40, 100, 1, 1, 12},
      {"Long", 1, 270, 270, 2, 1, 5, kCausal},
      {"LongFull", 1, 260, 97, 1, 1, 8},
      {"LargeMean", 1, 12, 12, 1, 1, 8, kCausal, 0, 4.0},
      {"Threads", 3, 64, 64, 4, 4, 32, kCausal},
      {"NoKeys", 1, 3, 0, 2, 2, 4},
      {"NoQueries", 1, 0, 3, 2, 1, 4, kCausal},
      {"NothingAtAll", 2, 0, 0, 1, 1, 3, kCausal},
      {"NoBatch", 0, 3, 3, 2, 2, 4, kCausal},
      {"NoHeads", 1, 3, 3, 0, 0, 4},
      {"NoWidth", 1, 3, 3, 1, 1, 0, kCausal},
  };
}

inline OpCases attention_cases() {
  OpCases cases{&ops::kAttention, {}};
  for (const AttentionShape& shape : attention_shapes())
    cases.cases.push_back({.name = shape.name,
                           .inputs = {shape.query(shape.mean), shape.key(shape.mean), shape.key()},
                           .attrs = shape.attrs,
                           .reduction_length = shape.reduction_length(),
                           .magnitude = shape.magnitude(),
                           .gradient_outputs = {0}});
  return cases;
}

// lse is drawn at random near its true size: the formula does not ask for more.
inline OpCases attention_backward_cases() {
  OpCases cases{&ops::kAttentionBackward, {}};
  for (const AttentionShape& shape : attention_shapes()) {
    if (shape.mean != 0.0) continue;  // such scores would need the lse that belongs to them
    const double log_keys = std::log(1.0 + static_cast<double>(shape.keys));
    cases.cases.push_back(
        {.name = shape.name,
         .inputs = {shape.query(), shape.key(), shape.key(), shape.query(),
                    as_sum(normal({shape.batch, shape.heads, shape.queries}, 0.1, 0.5 + log_keys)),
                    shape.query()},
         .attrs = shape.attrs,
         .reduction_length = shape.reduction_length(),
         .magnitude = shape.magnitude()});
  }
  return cases;
}

}  // namespace obelisk
