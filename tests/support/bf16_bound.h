// How far losses in bf16 may lie from those in f32.
#pragma once

#include <cmath>

namespace obelisk {

// Of the mean loss of so many tokens, in nats, for a model of so many layers. Our own estimate, not
// from a source. A rounding to bf16 errs on average by 1.6e-3 of the number (2^-8 / sqrt(3) of the
// power of two below it). On its way to the logits a token meets 2 L + 9 of them that do not know
// of each other: the 2 L residual sums, six in a branch, three at the end; so logits err by 1.6e-3
// sqrt(2 L + 9) of their spread, of which a trained model has about 3. The loss of a token changes
// by sum_v (p_v - y_v) dz_v, at most sqrt(2) of that; the mean of tokens that err independently by
// less, with the root of their number. The bound is six standard deviations.
inline double bf16_loss_bound(int layers, double tokens) {
  constexpr double kRounding = 1.6e-3, kSpread = 3.0;
  return 6 * kRounding * std::sqrt(2.0 * layers + 9.0) * kSpread * std::sqrt(2.0 / tokens);
}

}  // namespace obelisk
