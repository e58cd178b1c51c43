// The vector kernels of the reductions, one entry for all.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

enum class Reduction : uint8_t { Sum, Max };

// y = x reduced over the dims of the mask, divided by `divisor`. x is contiguous and not empty; y
// has its dtype, or f32 for a bf16 x.
void run_reduce(Reduction op, ExecContext& context, const Tensor& x, int64_t dims, double divisor,
                const Tensor& y);

// y[r] = index of the largest element of row r of x [rows, width], width > 0.
void run_argmax(ExecContext& context, const Tensor& x, int64_t rows, int64_t width,
                const Tensor& y);

}  // namespace obelisk::ops
