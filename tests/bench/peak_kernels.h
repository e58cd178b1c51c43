// The loops that find the memory's limits, for the widest vectors of the processor.
#pragma once

#include <cstdint>

namespace obelisk::bench {

// y = x.
void copy(const float* x, float* y, int64_t n);
// The sum of x.
float read(const float* x, int64_t n);
// AdamW's traffic without its arithmetic: four arrays read, three of them written.
void four_reads_three_writes(const float* g, float* m, float* v, float* w, int64_t n);

}  // namespace obelisk::bench
