#pragma once

#include "ops/reduce/reduce.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline OpCase reduce_case(const char* name, const Operand& x, int64_t dims, bool keepdim,
                          int64_t length) {
  return {.name = name,
          .inputs = {x},
          .attrs = ops::ReduceAttrs{dims, keepdim},
          .reduction_length = length};
}

inline std::vector<OpCase> reduce_shape_cases() {
  OpCase large_mean = reduce_case("LargeMean", normal({5, 300}, 1.0, 1e4), bit(1), false, 300);
  large_mean.magnitude = 1e4;
  return {
      reduce_case("Scalar", normal({}), 0, false, 1),
      reduce_case("One", normal({1, 1}), bits(0, 1), false, 1),
      reduce_case("NothingReduced", normal({3, 5}), 0, false, 1),
      reduce_case("Width3", normal({7, 3}), bit(1), false, 3),
      reduce_case("Width5All", normal({5}), bit(0), false, 5),
      reduce_case("Width17Keep", normal({4, 17}), bit(1), true, 17),
      reduce_case("Width64", normal({4, 64}), bit(1), false, 64),
      reduce_case("Columns", normal({6, 65}), bit(0), false, 6),
      reduce_case("ColumnsEight", normal({8, 7}), bit(0), false, 8),
      reduce_case("ColumnsBlocks", normal({300, 33}), bit(0), false, 300),
      reduce_case("ColumnsWide", normal({40, 1100}), bit(0), true, 40),
      reduce_case("Middle", normal({3, 20, 9}), bit(1), false, 20),
      reduce_case("MiddleBlocks", normal({2, 270, 5}), bit(1), true, 270),
      reduce_case("Outside", normal({6, 4, 10}), bits(0, 2), false, 60),
      reduce_case("OutsideKeep", normal({6, 4, 10}), bits(0, 2), true, 60),
      reduce_case("Alternating", normal({2, 3, 4, 5, 6}), bits(0, 2, 4), false, 48),
      reduce_case("AlternatingOnes", normal({4, 1, 3, 1, 5}), bits(1, 2), true, 3),
      reduce_case("EmptyReduced", normal({3, 0, 1}), bits(1, 2), false, 1),
      reduce_case("EmptyKept", normal({0, 3}), bit(1), false, 3),
      reduce_case("EmptyAll", normal({0, 3}), bits(0, 1), false, 1),
      reduce_case("Large", normal({40000}), bit(0), false, 40000),
      reduce_case("LargeRows", normal({3, 20011}), bit(1), false, 20011),
      reduce_case("LargeColumns", normal({1031, 41}), bit(0), false, 1031),
      large_mean,
  };
}

inline std::vector<OpCase> argmax_shape_cases() {
  return {
      {.name = "One", .inputs = {normal({1, 1})}},
      {.name = "Vector", .inputs = {normal({7})}},
      {.name = "Empty", .inputs = {normal({0, 3})}},
      {.name = "EmptyBoth", .inputs = {normal({0, 0})}},
      {.name = "Width3", .inputs = {normal({2, 5, 3})}},
      {.name = "Width17", .inputs = {normal({4, 17})}},
      {.name = "Width64", .inputs = {normal({3, 64}, 1.0, -100.0)}},
      {.name = "Ties", .inputs = {values({2, 5}, {1, 3, 3, 2, 3, 0, 0, 0, 0, 0})}},
      {.name = "Large", .inputs = {normal({5, 9001})}},
  };
}

inline std::vector<OpCase> max_backward_shape_cases() {
  auto make = [](const char* name, const Operand& x, const Operand& y, int64_t dims) {
    Operand dy = normal(y.shape);
    return OpCase{.name = name, .inputs = {x, y, dy}, .attrs = ops::ReduceAttrs{dims, false}};
  };
  return {
      make("One", values({1}, {2}), values({}, {2}), bit(0)),
      make("Empty", values({0, 2}, {}), values({2}, {0, 0}), bit(0)),
      make("Rows", values({2, 3}, {1, 5, 5, 4, 4, 4}), values({2}, {5, 4}), bit(1)),
      make("Columns", values({3, 2}, {1, 5, 9, 5, 4, 0}), values({2}, {9, 5}), bit(0)),
      make("Outside", values({2, 2, 2}, {1, 2, 3, 4, 5, 2, 3, 8}), values({2}, {5, 8}), bits(0, 2)),
  };
}

inline std::vector<OpCase> share_cases() {
  auto make = [](const char* name, const Operand& x, int64_t count) {
    return OpCase{.name = name, .inputs = {x}, .attrs = ops::CountAttrs{count}};
  };
  return {make("Scalar", normal({}), 3),       make("One", normal({1, 1}), 1),
          make("Empty", normal({0, 4}), 5),    make("OfNothing", normal({3}), 0),
          make("Width17", normal({5, 17}), 7), make("Large", normal({20011}), 49)};
}

inline std::vector<OpCases> reduce_cases() {
  return {{&ops::kSum, reduce_shape_cases()},
          {&ops::kMean, reduce_shape_cases()},
          {&ops::kMax, reduce_shape_cases()},
          {&ops::kArgmax, argmax_shape_cases()},
          {&ops::kMaxBackward, max_backward_shape_cases()},
          {&ops::kShare, share_cases()}};
}

}  // namespace obelisk
