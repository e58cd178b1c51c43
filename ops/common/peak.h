// How fast this processor multiplies and adds: what rates of products are held against.
#pragma once

#include "framework/tensor/context.h"

namespace obelisk::ops {

// f32 operations a second (a fused multiply-add is two) of all threads of the context together, in
// registers, without memory. The best of several tries that together take about `seconds`: anything
// else on the machine only takes away. Ranks that measure at once see what each gets beside the
// others.
double measure_multiply_add_rate(const ExecContext& context, double seconds);

// The same for products of bf16 numbers with f32 sums: by the processor's own dot product
// (AVX512-BF16) where it has one, else by f32 multiply-adds, as if widening cost nothing.
double measure_bf16_dot_rate(const ExecContext& context, double seconds);

}  // namespace obelisk::ops
