#pragma once

#include "framework/op/full.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline OpCases full_cases() {
  const auto make = [](const char* name, DimShape shape, DType dtype, double value) {
    return OpCase{.name = name, .inputs = {}, .attrs = FullAttrs{shape, dtype, value}};
  };
  return {&kFull,
          {make("Scalar", {}, DType::F32, -0.1), make("One", {1, 1}, DType::F64, 1.0 / 3),
           make("Empty", {3, 0}, DType::F32, 2), make("Integers", {2, 5}, DType::I64, -7),
           make("Width17", {5, 17}, DType::F64, 0)}};
}

}  // namespace obelisk
