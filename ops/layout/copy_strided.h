// Copies of strided memory, by element size.
#pragma once

#include "framework/tensor/context.h"
#include "framework/tensor/tensor.h"

namespace obelisk::ops {

// Elements of `shape` from source to destination, both with strides in elements; a source stride of
// 0 repeats. Buffers must not overlap.
void copy_strided(const ExecContext& context, size_t element_size, const Shape& shape,
                  const void* source, const Strides& source_strides, void* destination,
                  const Strides& destination_strides);

// The same for a contiguous destination whose last dim runs across the source's memory: tiles of
// both sides stay in cache.
void copy_transposed(const ExecContext& context, size_t element_size, const Shape& shape,
                     const void* source, const Strides& source_strides, void* destination);

void zero_strided(const ExecContext& context, size_t element_size, const Shape& shape,
                  void* destination, const Strides& strides);

// Calls f.template operator()<T>() with an unsigned T of `element_size` bytes.
template <typename F>
void visit_element_size(size_t element_size, F&& f) {
  if (element_size == 1) return f.template operator()<uint8_t>();
  if (element_size == 2) return f.template operator()<uint16_t>();
  if (element_size == 4) return f.template operator()<uint32_t>();
  OBELISK_ASSERT(element_size == 8);
  return f.template operator()<uint64_t>();
}

}  // namespace obelisk::ops
