#pragma once

#include "ops/layout/layout.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline OpCases reshape_cases() {
  auto make = [](const char* name, const Operand& x, const Shape& shape) {
    return OpCase{.name = name, .inputs = {x}, .attrs = ops::ReshapeAttrs{to_dims(shape)}};
  };
  return {&ops::kReshape,
          {
              make("ToScalar", normal({1, 1}), {}),
              make("FromScalar", normal({}), {1, 1, 1}),
              make("Merge", normal({2, 3, 5}), {6, 5}),
              make("Split", normal({4, 15}), {2, 2, 3, 5}),
              make("Empty", normal({0, 3}), {5, 0}),
              make("StridedSplit", with_row_gap(normal({2, 3, 8}), 8), {2, 3, 2, 4}),
              make("StridedMerge", with_row_gap(normal({2, 3, 8}), 1), {6, 8}),
              make("StridedOnes", with_row_gap(normal({2, 3, 8}), 1), {1, 2, 3, 1, 8, 1}),
          }};
}

inline OpCases slice_cases() {
  auto make = [](const char* name, const Operand& x, int64_t dim, int64_t begin, int64_t end) {
    return OpCase{.name = name, .inputs = {x}, .attrs = ops::SliceAttrs{dim, begin, end}};
  };
  return {&ops::kSlice,
          {
              make("First", normal({5, 3}), 0, 1, 4),
              make("Last", normal({4, 17}), 1, 5, 17),
              make("Middle", normal({2, 5, 3}), 1, 0, 2),
              make("OneColumn", normal({6, 5}), 1, 2, 3),
              make("Whole", normal({1, 7}), 1, 0, 7),
              make("Nothing", normal({3, 4}), 1, 4, 4),
              make("Empty", normal({0, 4}), 1, 1, 3),
              make("Strided", with_row_gap(normal({3, 8}), 2), 1, 3, 8),
          }};
}

inline OpCases split_cases() {
  auto make = [](const char* name, const Operand& x, int64_t dim, const Shape& sizes) {
    return OpCase{.name = name, .inputs = {x}, .attrs = ops::SplitAttrs{dim, sizes}};
  };
  return {&ops::kSplit,
          {
              make("Packed", normal({2, 3, 24}), 2, {8, 8, 8}),
              make("Uneven", normal({4, 9}), 1, {1, 5, 0, 3}),
              make("First", normal({6, 5}), 0, {2, 4}),
              make("One", normal({1, 3}), 0, {1}),
              make("Empty", normal({0, 6}), 1, {2, 4}),
              make("Strided", with_row_gap(normal({3, 6}), 1), 1, {4, 2}),
              make("Large", normal({120, 192}), 1, {64, 64, 64}),
          }};
}

inline OpCases concat_cases() {
  auto make = [](const char* name, std::vector<Operand> inputs, int64_t dim) {
    return OpCase{.name = name, .inputs = std::move(inputs), .attrs = ops::ConcatAttrs{dim}};
  };
  return {
      &ops::kConcat,
      {
          make("Alone", {normal({2, 3})}, 0),
          make("Rows", {normal({2, 3}), normal({4, 3})}, 0),
          make("Columns", {normal({3, 1}), normal({3, 17}), normal({3, 4})}, 1),
          make("Middle", {normal({2, 3, 5}), normal({2, 1, 5})}, 1),
          make("Empty", {normal({0, 3}), normal({2, 3}), normal({0, 3})}, 0),
          make("Nothing", {normal({2, 0}), normal({2, 0})}, 1),
          make("Strided", {with_row_gap(normal({3, 9}), 2), with_row_gap(normal({3, 5}), 1)}, 1),
          make("Large", {normal({110, 64}), normal({110, 64}), normal({110, 64})}, 1),
          make("Integers", {integers({2}, {1, 2}), integers({1}, {7})}, 0),
      }};
}

inline std::vector<OpCases> copy_cases() {
  auto permute = [](const char* name, const Operand& x, const Shape& order) {
    return OpCase{.name = name, .inputs = {x}, .attrs = ops::PermuteAttrs{order}};
  };
  auto broadcast = [](const char* name, const Operand& x, const Shape& shape) {
    return OpCase{.name = name,
                  .inputs = {x},
                  .attrs = ops::BroadcastToAttrs{to_dims(shape)},
                  .reduction_length = num_elements(shape)};
  };
  auto pad = [](const char* name, const Operand& x, int64_t dim, int64_t before, int64_t after) {
    return OpCase{.name = name, .inputs = {x}, .attrs = ops::PadAttrs{dim, before, after}};
  };
  return {
      {&ops::kCopy,
       {
           {.name = "Scalar", .inputs = {normal({})}},
           {.name = "One", .inputs = {normal({1, 1})}},
           {.name = "Empty", .inputs = {normal({3, 0, 2})}},
           {.name = "Dense", .inputs = {normal({5, 17})}},
           {.name = "Strided", .inputs = {with_row_gap(normal({2, 3, 9}), 4)}},
           {.name = "StridedColumn", .inputs = {with_row_gap(normal({7, 1}), 4)}},
           {.name = "Large", .inputs = {with_row_gap(normal({350, 64}), 128)}},
           {.name = "Integers", .inputs = {integers({3}, {-1, 0, 5})}},
       }},
      {&ops::kPermute,
       {
           permute("Scalar", normal({}), {}),
           permute("Identity", normal({2, 3}), {0, 1}),
           permute("Matrix", normal({5, 7}), {1, 0}),
           permute("MatrixOne", normal({1, 7}), {1, 0}),
           permute("Tiles", normal({70, 37}), {1, 0}),
           permute("Heads", normal({2, 5, 3, 8}), {0, 2, 1, 3}),
           permute("HeadsOut", normal({2, 5, 3, 8}), {0, 2, 3, 1}),
           permute("Rotate", normal({3, 4, 5}), {2, 0, 1}),
           permute("Reverse", normal({2, 3, 4, 5, 2}), {4, 3, 2, 1, 0}),
           permute("Empty", normal({3, 0, 4}), {2, 0, 1}),
           permute("Strided", with_row_gap(normal({4, 9}), 3), {1, 0}),
           permute("StridedColumn", with_row_gap(normal({3, 4, 1}), 3), {1, 0, 2}),
           permute("Large", normal({150, 151}), {1, 0}),
       }},
      {&ops::kBroadcastTo,
       {
           broadcast("Scalar", normal({}), {2, 3}),
           broadcast("One", normal({1}), {1, 1}),
           broadcast("Rows", normal({17}), {3, 17}),
           broadcast("Columns", normal({4, 1}), {4, 9}),
           broadcast("Middle", normal({2, 1, 5}), {2, 3, 5}),
           broadcast("Empty", normal({0, 3}), {2, 0, 3}),
           broadcast("ToEmpty", normal({1, 3}), {0, 3}),
           broadcast("Same", normal({3, 5}), {3, 5}),
           broadcast("Large", normal({65}), {400, 65}),
       }},
      {&ops::kPad,
       {
           pad("Rows", normal({3, 4}), 0, 1, 2),
           pad("Columns", normal({3, 5}), 1, 2, 1),
           pad("Middle", normal({2, 1, 7}), 1, 0, 3),
           pad("Nothing", normal({2, 3}), 1, 0, 0),
           pad("Empty", normal({0, 3}), 1, 1, 1),
           pad("AroundNothing", normal({3, 0}), 1, 2, 2),
           pad("Strided", with_row_gap(normal({3, 5}), 2), 1, 1, 1),
           pad("Large", normal({120, 192}), 1, 64, 0),
       }},
  };
}

// Operands come in f32 and in f64. Differences of results of fewer bits than f64 say nothing about
// a gradient: those cases have plain values as operands, and 16-bit results are compared as bit
// patterns.
inline OpCases cast_cases() {
  std::vector<double> numbers;
  for (int i = -70; i < 71; ++i) numbers.push_back(i * 0.8125);
  const Attrs to_f64 = ops::CastAttrs{DType::F64};
  OpCases cases{
      &ops::kCast,
      {
          {.name = "Normal", .inputs = {normal({7, 19})}, .attrs = to_f64},
          {.name = "Empty", .inputs = {normal({0, 3})}, .attrs = to_f64},
          {.name = "One", .inputs = {normal({1})}, .attrs = to_f64},
          {.name = "Strided", .inputs = {with_row_gap(normal({4, 9}), 2)}, .attrs = to_f64},
          {.name = "StridedColumn", .inputs = {with_row_gap(normal({9, 1}), 2)}, .attrs = to_f64},
          {.name = "Large", .inputs = {normal({20500})}, .attrs = to_f64},
      }};
  for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32, DType::U8}) {
    const std::string to(to_string(dtype));
    const Attrs attrs = ops::CastAttrs{dtype};
    cases.cases.push_back(
        {.name = "Values_" + to, .inputs = {values({3, 47}, numbers)}, .attrs = attrs});
    cases.cases.push_back({.name = "Integers_" + to,
                           .inputs = {integers({5}, {-3, 0, 1, 200, 70000})},
                           .attrs = attrs});
  }
  return cases;
}

inline std::vector<OpCases> layout_cases() {
  std::vector<OpCases> cases{reshape_cases(), slice_cases(), split_cases(), concat_cases(),
                             cast_cases()};
  for (OpCases& more : copy_cases()) cases.push_back(std::move(more));
  return cases;
}

}  // namespace obelisk
