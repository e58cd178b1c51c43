// The conversion loops behind ops::cast.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/tensor/dtype.h"

namespace obelisk::ops {

// Converts n elements that lie side by side.
using ConvertRange = void (*)(const void* from, void* to, int64_t n);

// Vectorised among f64, f32, bf16 and f16 (f16 where the processor converts it); one element at a
// time otherwise. Same bits as convert_element().
ConvertRange convert_range(DType from, DType to);

}  // namespace obelisk::ops
