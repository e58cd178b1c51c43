#include "framework/tensor/shape.h"

namespace obelisk {

int64_t num_elements(const Shape& shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    OBELISK_CHECK(dim >= 0, ShapeError, "shape: dims must not be negative; got {}",
                  to_string(shape));
    OBELISK_CHECK(!__builtin_mul_overflow(count, dim, &count), ShapeError,
                  "shape: number of elements must fit 63 bits; got {}", to_string(shape));
  }
  return count;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = shape;
  int64_t stride = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= shape[i] > 0 ? shape[i] : 1;
  }
  return strides;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace obelisk
