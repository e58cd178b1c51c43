// The loops that find a core's and the memory's limits, for the widest vectors of the processor.
#pragma once

#include <cstdint>

namespace obelisk::bench {

// `rounds` times 12 independent chains of f32 fused multiply-adds, in registers. Returns the number
// of floating-point operations, two an element; `sink` keeps the work alive.
double fma_chains(int64_t rounds, float* sink);

// y = x.
void copy(const float* x, float* y, int64_t n);
// The sum of x.
float read(const float* x, int64_t n);
// AdamW's traffic without its arithmetic: four arrays read, three of them written.
void four_reads_three_writes(const float* g, float* m, float* v, float* w, int64_t n);

}  // namespace obelisk::bench
