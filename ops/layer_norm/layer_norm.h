// Layer normalisation (Ba, Kiros, Hinton, 2016), alone and fused with the residual addition before
// it.
//
//   y = (x - mean) * rstd * w + b,   mean = mean_D(x),   rstd = 1 / sqrt(mean_D((x - mean)^2) +
//   eps)
//
// D is x's last dim; leading dims are rows. The variance is the biased one and takes a second pass
// over the row, so a large mean does not cancel it away. With n = (x - mean) * rstd and g = dy * w:
//
//   dx = rstd * (g - mean_D(g) - n * mean_D(g * n)),   dw = sum_rows(dy * n),   db = sum_rows(dy)
//
// Where D is 0, mean and variance are 0; without rows, dw and db are 0.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct LayerNormAttrs {
  double eps = 1e-5;  // not negative
  static constexpr auto fields() { return std::tuple{field("eps", &LayerNormAttrs::eps)}; }
};

struct LayerNormBackwardAttrs {
  bool with_bias = true;  // db is an output
  static constexpr auto fields() {
    return std::tuple{field("with_bias", &LayerNormBackwardAttrs::with_bias)};
  }
};

// (x [..., D], w [D], b [D] or absent) -> y [..., D], mean [...], rstd [...].
//
// f32, bf16 or f64 alike. Statistics have the same dtype, or f32 for bf16, and so have the
// gradients of w and b, which are sums over rows. Saves x, w, mean and rstd. Throws ShapeError.
extern const OpDef kLayerNorm;

// (x [..., D], residual [..., D], w [D], b [D] or absent) -> y, sum, mean [...], rstd [...].
//
// sum = x + residual and y = layer_norm(sum), each row read once. Saves sum, w, mean and rstd, and
// neither x nor residual. Throws ShapeError.
extern const OpDef kAddLayerNorm;

// (dy [..., D], dsum [..., D] or absent, x [..., D], w [D], mean [...], rstd [...])
//   -> dx + dsum [..., D], dw [D], db [D] if with_bias.
//
// The gradient of both: x is what was normalised, dsum the gradient that reaches it from elsewhere.
extern const OpDef kLayerNormBackward;

// b may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps = 1e-5);

struct NormedSum {
  Tensor normed;
  Tensor sum;
};
NormedSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& w, const Tensor& b,
                         double eps = 1e-5);

// The vector kernels, named by the definitions above.
void layer_norm_cpu(const KernelArgs& args);
void add_layer_norm_cpu(const KernelArgs& args);
void layer_norm_backward_cpu(const KernelArgs& args);

}  // namespace obelisk::ops
