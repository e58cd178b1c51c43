#include "parallel/optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/optimizer/optimizer.h"

namespace obelisk::parallel {

AdamW::AdamW(const FlatParameters& parameters, const AdamWOptions& options)
    : parameters_(parameters),
      options_(options),
      m_(zeros(parameters.masters().shape(), parameters.masters().dtype())),
      v_(zeros(parameters.masters().shape(), parameters.masters().dtype())),
      rates_(zeros({2}, DType::F64)) {}

double AdamW::gradient_norm() {
  NoGradScope no_grad;
  norm_sq_ = ops::squared_norm(parameters_.gradients());
  return std::sqrt(norm_sq_.item<double>());
}

void AdamW::step(double learning_rate) {
  OBELISK_ASSERT(norm_sq_.defined());
  NoGradScope no_grad;
  ++steps_done_;
  rates_.data<double>()[0] = learning_rate;
  rates_.data<double>()[1] = static_cast<double>(steps_done_);
  const Tensor clip = ops::clip_factor(norm_sq_, options_.grad_clip_norm);
  const int64_t decayed = parameters_.decayed_size();
  update(0, decayed, options_.weight_decay, clip);
  update(decayed, parameters_.size(), 0.0, clip);
}

void AdamW::update(int64_t begin, int64_t end, double weight_decay, const Tensor& clip) const {
  if (begin == end) return;
  auto part = [&](const Tensor& flat) { return flat.alias({end - begin}, {1}, begin); };
  const bool rounds = parameters_.values().dtype() == DType::BF16;
  ops::adamw(part(parameters_.masters()), part(m_), part(v_), part(parameters_.gradients()), clip,
             rates_,
             {.beta1 = options_.beta1,
              .beta2 = options_.beta2,
              .epsilon = options_.epsilon,
              .weight_decay = weight_decay},
             rounds ? part(parameters_.values()) : Tensor());
}

double learning_rate(const Schedule& schedule, int64_t step) {
  if (step < schedule.warmup_steps)
    return schedule.peak_lr * static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmup_steps + 1);
  if (schedule.kind == ScheduleKind::Constant) return schedule.peak_lr;
  const int64_t length = schedule.decay_steps - schedule.warmup_steps;
  if (step >= schedule.decay_steps || length <= 0) return schedule.min_lr;
  const double progress =
      static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(length);
  return schedule.min_lr +
         0.5 * (schedule.peak_lr - schedule.min_lr) * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace obelisk::parallel
