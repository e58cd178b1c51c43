// The machine's limits, measured in the run that is held against them.
#pragma once

#include "framework/tensor/context.h"

namespace obelisk::bench {

struct Peaks {
  double fma_flops = 0;    // f32 operations a second of fused multiply-adds in registers
  double bf16_flops = 0;   // of bf16 products with f32 sums, or fma_flops where that is more
  double read_bytes = 0;   // bytes a second: one array read
  double copy_bytes = 0;   // one array read, one written, both counted
  double adamw_bytes = 0;  // four arrays read, three of them written, all seven counted
};

// Of all threads of the current context; streams run over four arrays of stream_mib MiB. Each
// number is the best of several tries.
Peaks measure_peaks(const ExecContext& context, int64_t stream_mib = 256);

}  // namespace obelisk::bench
