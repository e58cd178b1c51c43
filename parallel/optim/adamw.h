// AdamW over the flat buffers of a model (Loshchilov and Hutter 2019, in the order of operations of
// torch.optim.AdamW), with clipping by the global gradient norm and the learning-rate schedules.
#pragma once

#include "framework/autograd/node.h"
#include "framework/module/flat_parameters.h"

namespace obelisk::parallel {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;    // of parameters that decay
  double grad_clip_norm = 1.0;  // 0: off
};

class AdamW {
 public:
  AdamW(const FlatParameters& parameters, const AdamWOptions& options);

  // L2 norm of the flat gradient, all parameters together. NaN or Inf when a gradient is.
  double gradient_norm();
  // One update of the masters, and of bf16 values with them, with the gradients clipped by the norm
  // that gradient_norm() found last.
  void step(double learning_rate);
  int64_t steps_done() const { return steps_done_; }

 private:
  // Elements [begin, end) of the flat buffers.
  void update(int64_t begin, int64_t end, double weight_decay, const Tensor& clip) const;

  const FlatParameters& parameters_;
  AdamWOptions options_;
  Tensor m_;        // first moment, [size]
  Tensor v_;        // second moment
  Tensor rates_;    // f64 [2]: learning rate and step number of the running update
  Tensor norm_sq_;  // f64 scalar, of the last gradient_norm()
  int64_t steps_done_ = 0;
};

enum class ScheduleKind { Constant, Cosine };

struct Schedule {
  ScheduleKind kind = ScheduleKind::Cosine;
  double peak_lr = 0;
  double min_lr = 0;
  int64_t warmup_steps = 0;
  int64_t decay_steps = 0;  // where a cosine reaches min_lr, and stays
};

// Learning rate of step i = 0, 1, ...: peak_lr (i + 1) / (warmup_steps + 1) while i < warmup_steps;
// then peak_lr, or min_lr + (peak_lr - min_lr) (1 + cos(pi r)) / 2 with r = (i - warmup_steps) /
// (decay_steps - warmup_steps), at most 1.
double learning_rate(const Schedule& schedule, int64_t step);

}  // namespace obelisk::parallel
