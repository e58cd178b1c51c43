// The vector passes over a row of logits.
#pragma once

#include <cstdint>

namespace obelisk::ops {

// Largest of n > 0 logits; sets `bad` when one is NaN or +inf.
template <typename T>
double largest_logit(const T* logits, int64_t n, bool& bad);

// weights[i] = exp((logits[i] - largest) / temperature), in f64.
template <typename T>
void softmax_weights(const T* logits, int64_t n, double largest, double temperature,
                     double* weights);

}  // namespace obelisk::ops
