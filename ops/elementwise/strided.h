// Walking several strided operands of one shape together, and how elementwise work is cut for
// threads.
#pragma once

#include <algorithm>
#include <array>

#include "framework/tensor/context.h"
#include "framework/tensor/tensor.h"

namespace obelisk::ops {

// Below this many elements a second thread costs more than it brings.
inline constexpr int64_t kSerialElements = 20480;
// Above it, ranges are cut in pieces this small, so that threads get nearly equal shares.
inline constexpr int64_t kGrainElements = 4096;

// parallel_for's grain for `items` items of `elements_per_item` elements each.
inline int64_t elementwise_grain(int64_t items, int64_t elements_per_item = 1) {
  const int64_t width = std::max<int64_t>(elements_per_item, 1);
  if (items * width < kSerialElements) return std::max<int64_t>(items, 1);
  return std::max<int64_t>(kGrainElements / width, 1);
}

// Strides of an operand seen in a broadcast shape: dims aligned at the end, 0 where it is repeated.
inline Strides broadcast_strides(const Tensor& operand, const Shape& shape) {
  Strides strides;
  const int missing = shape.size() - operand.num_dims();
  for (int i = 0; i < shape.size(); ++i) {
    const bool repeated = i < missing || operand.shape()[i - missing] == 1;
    strides.push_back(repeated ? 0 : operand.strides()[i - missing]);
  }
  return strides;
}

// Offset of element `index` (row-major over shape) under `strides`.
inline int64_t strided_offset(int64_t index, const Shape& shape, const Strides& strides) {
  int64_t offset = 0;
  for (int dim = shape.size() - 1; dim >= 0; --dim) {
    offset += index % shape[dim] * strides[dim];
    index /= shape[dim];
  }
  return offset;
}

// K operands of one shape with strides of their own. Dims of size 1 are dropped and neighbours
// merged where every operand's memory allows, so that contiguous operands become one long row.
template <int K>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, K>;

  StridedLoop(const Shape& shape, const std::array<Strides, K>& strides) {
    for (int dim = shape.size() - 1; dim >= 0; --dim) {
      if (shape[dim] == 1) continue;
      Offsets outer;
      for (int k = 0; k < K; ++k) outer[k] = strides[k][dim];
      if (num_dims_ > 0 && continues(outer)) {
        sizes_[num_dims_ - 1] *= shape[dim];
      } else {
        sizes_[num_dims_] = shape[dim];
        strides_[num_dims_++] = outer;
      }
    }
    if (num_dims_ == 0) {  // one element
      sizes_[0] = 1;
      strides_[0].fill(1);
      num_dims_ = 1;
    }
  }

  // Length of the innermost dim and its step in each operand.
  int64_t width() const { return sizes_[0]; }
  const Offsets& steps() const { return strides_[0]; }
  int64_t rows() const {
    int64_t rows = 1;
    for (int i = 1; i < num_dims_; ++i) rows *= sizes_[i];
    return rows;
  }

  // Calls body(offsets of a row's first element) for rows [begin, end), in row-major order.
  template <typename F>
  void for_rows(int64_t begin, int64_t end, F&& body) const {
    if (begin >= end) return;
    std::array<int64_t, kMaxDims> index{};
    Offsets offsets{};
    for (int64_t i = 1, rest = begin; i < num_dims_; rest /= sizes_[i], ++i) {
      index[i] = rest % sizes_[i];
      for (int k = 0; k < K; ++k) offsets[k] += index[i] * strides_[i][k];
    }
    for (int64_t row = begin; row < end; ++row) {
      body(offsets);
      for (int i = 1; i < num_dims_; ++i) {
        for (int k = 0; k < K; ++k) offsets[k] += strides_[i][k];
        if (++index[i] < sizes_[i]) break;
        for (int k = 0; k < K; ++k) offsets[k] -= sizes_[i] * strides_[i][k];
        index[i] = 0;
      }
    }
  }

  // Calls body(offsets, count) for pieces of rows that together cover every element once, from the
  // context's threads.
  template <typename F>
  void parallel(const ExecContext& context, F&& body) const {
    const int64_t num_rows = rows();
    if (num_rows == 1) {
      context.parallel_for(width(), elementwise_grain(width()), [&](int64_t begin, int64_t end) {
        Offsets offsets;
        for (int k = 0; k < K; ++k) offsets[k] = begin * steps()[k];
        body(offsets, end - begin);
      });
    } else if (width() > 0) {
      context.parallel_for(
          num_rows, elementwise_grain(num_rows, width()), [&](int64_t begin, int64_t end) {
            for_rows(begin, end, [&](const Offsets& offsets) { body(offsets, width()); });
          });
    }
  }

 private:
  // Whether a dim with strides `outer` steps on where the outermost dim so far ends.
  bool continues(const Offsets& outer) const {
    for (int k = 0; k < K; ++k)
      if (outer[k] != strides_[num_dims_ - 1][k] * sizes_[num_dims_ - 1]) return false;
    return true;
  }

  int num_dims_ = 0;  // innermost first
  std::array<int64_t, kMaxDims> sizes_{};
  std::array<Offsets, kMaxDims> strides_{};
};

}  // namespace obelisk::ops
