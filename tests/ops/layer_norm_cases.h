#pragma once

#include "ops/layer_norm/layer_norm.h"
#include "tests/ops/op_case.h"

namespace obelisk {

struct LayerNormShape {
  const char* name;
  Shape x;
  bool bias = true;
  double mean = 0.0;

  int64_t width() const { return x.last(); }
  Shape rows() const {
    return Shape(std::span<const int64_t>(x.begin(), static_cast<size_t>(x.size() - 1)));
  }
  Operand bias_operand() const { return bias ? normal({width()}) : absent(); }
};

inline std::vector<LayerNormShape> layer_norm_shapes() {
  return {
      {"OneDim", {6}},
      {"One", {1, 1}},
      {"Width1", {4, 1}},
      {"Width3", {2, 3, 3}},
      {"Width5NoBias", {5, 5}, false},
      {"Width7", {3, 7}},
      {"Width8", {9, 8}},
      {"Width17", {6, 17}},
      {"Width64NoBias", {4, 64}, false},
      {"Width65", {3, 65}},
      {"Width200", {2, 200}},
      {"LargeMean", {6, 48}, true, 1e4},
      {"SomeMean", {6, 48}, true, 16},
      {"EmptyRows", {0, 5}},
      {"EmptyWidth", {3, 0}},
      {"EmptyWidthNoBias", {2, 2, 0}, false},
      {"Blocks", {300, 65}},
      {"BlocksNarrow", {5000, 8}, false},
  };
}

inline OpCases layer_norm_cases() {
  OpCases cases{&ops::kLayerNorm, {}};
  for (const LayerNormShape& shape : layer_norm_shapes())
    cases.cases.push_back({.name = shape.name,
                           .inputs = {normal(shape.x, 1.0, shape.mean),
                                      normal({shape.width()}, 0.5, 1.0), shape.bias_operand()},
                           .attrs = ops::LayerNormAttrs{1e-5},
                           .reduction_length = std::max(shape.width(), num_elements(shape.rows())),
                           .magnitude = std::max(1.0, shape.mean),
                           .gradient_outputs = {0}});
  return cases;
}

inline OpCases add_layer_norm_cases() {
  OpCases cases{&ops::kAddLayerNorm, {}, Bf16::RoundedInside};
  for (const LayerNormShape& shape : layer_norm_shapes())
    for (int output : {0, 1, -1}) {  // which of normed and sum is used; -1: both
      if (output >= 0 && shape.width() != 17) continue;
      OpCase one = {.name = shape.name,
                    .inputs = {normal(shape.x, 1.0, shape.mean), normal(shape.x),
                               normal({shape.width()}, 0.5, 1.0), shape.bias_operand()},
                    .attrs = ops::LayerNormAttrs{1e-3},
                    .reduction_length = std::max(shape.width(), num_elements(shape.rows())),
                    .magnitude = std::max(1.0, shape.mean),
                    .gradient_outputs = {0, 1},
                    .in_bf16 = shape.mean < 1e4};
      if (output >= 0) {
        one.name += output == 0 ? "NormedOnly" : "SumOnly";
        one.gradient_outputs = {output};
      }
      cases.cases.push_back(one);
    }
  return cases;
}

inline OpCases layer_norm_backward_cases() {
  OpCases cases{&ops::kLayerNormBackward, {}};
  for (const LayerNormShape& shape : layer_norm_shapes())
    for (bool with_dsum : {false, true})
      cases.cases.push_back(
          {.name = std::string(shape.name) + (with_dsum ? "Dsum" : ""),
           .inputs = {normal(shape.x), with_dsum ? normal(shape.x) : absent(),
                      normal(shape.x, 1.0, shape.mean), normal({shape.width()}, 0.5, 1.0),
                      as_sum(normal(shape.rows(), 0.1, shape.mean)),
                      as_sum(positive(shape.rows()))},
           .attrs = ops::LayerNormBackwardAttrs{shape.bias},
           .reduction_length = std::max(shape.width(), num_elements(shape.rows())),
           .magnitude = std::max(4.0, shape.mean)});
  return cases;
}

}  // namespace obelisk
