// GELU (Hendrycks, Gimpel, Gaussian error linear units, 2016), elementwise:
//
//   erf form    y = x * Phi(x),   Phi(x) = (1 + erf(x / sqrt(2))) / 2
//   tanh form   y = x * (1 + tanh(u)) / 2,   u = sqrt(2 / pi) * (x + 0.044715 x^3)
//
// and its derivative, with phi(x) = exp(-x^2 / 2) / sqrt(2 pi):
//
//   erf form    dx = dy * (Phi(x) + x * phi(x))
//   tanh form   dx = dy * (s + x * s * (1 - s) * 2 du/dx),   s = (1 + tanh(u)) / 2
//
// NaN stays NaN, +inf gives +inf, -inf gives NaN (0 times infinity), as PyTorch has it.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

enum class GeluForm : uint8_t { Erf, Tanh };
constexpr std::string_view to_string(GeluForm form) {
  return form == GeluForm::Erf ? "erf" : "tanh";
}

struct GeluAttrs {
  GeluForm form = GeluForm::Erf;
  static constexpr auto fields() { return std::tuple{field("form", &GeluAttrs::form)}; }
};

// (x) -> y, any shape, f32 or f64. Saves x for backward. Throws ShapeError for other dtypes.
extern const OpDef kGelu;

// (x, dy) -> dx. Throws ShapeError unless shapes and dtypes are alike.
extern const OpDef kGeluBackward;

Tensor gelu(const Tensor& x, GeluForm form = GeluForm::Erf);

// The vector kernels, named by the definitions above.
void gelu_cpu(const KernelArgs& args);
void gelu_backward_cpu(const KernelArgs& args);

}  // namespace obelisk::ops
