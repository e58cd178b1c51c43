// What an optimizer step does to flat buffers: the gradient's norm, the factor that clips it, and
// AdamW.
//
// Numbers that change each step are operands and not attributes, so that a traced step is traced
// once.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

// (x [n], f32 or f64) -> sum of x^2, f64 []. Accumulated in f64, in blocks that do not depend on
// the thread count.
extern const OpDef kSquaredNorm;
Tensor squared_norm(const Tensor& x);

// (norm_sq f64 []) -> f64 []: min(1, max_norm / (sqrt(norm_sq) + 1e-6)), the rule of torch's
// clip_grad_norm_; 1 when max_norm is 0, that is, off. A NaN stays NaN: whether to skip the step is
// the caller's decision.
struct ClipFactorAttrs {
  double max_norm = 0.0;
  static constexpr auto fields() {
    return std::tuple{field("max_norm", &ClipFactorAttrs::max_norm)};
  }
};
extern const OpDef kClipFactor;
Tensor clip_factor(const Tensor& norm_sq, double max_norm);

struct AdamWAttrs {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  static constexpr auto fields() {
    return std::tuple{field("beta1", &AdamWAttrs::beta1), field("beta2", &AdamWAttrs::beta2),
                      field("epsilon", &AdamWAttrs::epsilon),
                      field("weight_decay", &AdamWAttrs::weight_decay)};
  }
};

// (param, m, v, grad, clip f64 [], rates f64 [2] = {learning rate, step number from 1}, copy or
// absent), no output; param, m and v are updated in place, in one pass over memory, which also
// writes param rounded to bf16 into copy. The first four are alike, f32 or f64. With g = clip *
// grad and step t (Loshchilov, Hutter, Decoupled weight decay regularization, 2019; order of
// operations of torch.optim.AdamW):
//
//   p <- p (1 - lr wd)
//   m <- m + (1 - beta1) (g - m),   v <- beta2 v + (1 - beta2) g^2
//   p <- p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
extern const OpDef kAdamW;
void adamw(const Tensor& param, const Tensor& m, const Tensor& v, const Tensor& grad,
           const Tensor& clip, const Tensor& rates, const AdamWAttrs& attrs,
           const Tensor& copy = Tensor());

// One step's constants, computed in double.
struct AdamWConstants {
  AdamWConstants(const AdamWAttrs& attrs, const Tensor& clip, const Tensor& rates);
  double clip, keep, beta2, one_minus_beta1, one_minus_beta2, step_size, inverse_root, epsilon;
};

// The vector kernels, named by the definitions above.
void squared_norm_cpu(const KernelArgs& args);
void adamw_cpu(const KernelArgs& args);

}  // namespace obelisk::ops
