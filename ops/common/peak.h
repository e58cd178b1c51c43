// How fast this processor multiplies and adds: what rates of products are held against.
#pragma once

#include "framework/tensor/context.h"

namespace obelisk::ops {

// f32 operations a second (a fused multiply-add is two) of all threads of the context together, in
// registers, without memory. The best of several tries that together take about `seconds`: anything
// else on the machine only takes away. Ranks that measure at once see what each gets beside the
// others.
double measure_multiply_add_rate(const ExecContext& context, double seconds);

}  // namespace obelisk::ops
