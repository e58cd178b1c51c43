// New tensors with one value everywhere, for code that is traced as well: backward rules, the
// engine, modules. In eager mode they are full() of tensor.h; while a graph is traced they become
// the op `full`, whose shape may have symbols.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk {

struct FullAttrs {
  DimShape shape;
  DType dtype = DType::F32;  // F32, BF16, F64 or I64
  double value = 0.0;
  static constexpr auto fields() {
    return std::tuple{field("shape", &FullAttrs::shape), field("dtype", &FullAttrs::dtype),
                      field("value", &FullAttrs::value)};
  }
};

// No inputs. Error: "full: dtype must be f32, bf16, f64 or i64; ...".
extern const OpDef kFull;

Tensor full_like(const Tensor& x, double value);
Tensor zeros_like(const Tensor& x);
Tensor zeros_like(const Tensor& x, DType dtype);

}  // namespace obelisk
