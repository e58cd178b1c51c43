// Shape and Strides: up to six numbers, inline, row-major. Prints as [16, 128, 512].
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "framework/base/error.h"

namespace obelisk {

// Video is B, T, H, W, C and one more for heads: six dims are enough, and inline storage keeps
// shapes off the heap.
inline constexpr int kMaxDims = 6;

// A short list of per-dim values: T is int64_t (Shape, Strides) or Dim (symbolic shapes).
template <typename T>
class DimList {
 public:
  DimList() = default;
  DimList(std::initializer_list<T> dims) { assign(std::span<const T>(dims.begin(), dims.size())); }
  explicit DimList(std::span<const T> dims) { assign(dims); }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return dims_.data(); }
  const T* end() const { return dims_.data() + size_; }
  T* begin() { return dims_.data(); }
  T* end() { return dims_.data() + size_; }

  const T& operator[](int dim) const { return dims_[check(dim)]; }
  T& operator[](int dim) { return dims_[check(dim)]; }
  const T& last() const { return dims_[check(size_ - 1)]; }

  void push_back(const T& value) {
    OBELISK_CHECK(size_ < kMaxDims, ShapeError, "shape: at most {} dims; got more", kMaxDims);
    dims_[size_++] = value;
  }
  DimList with(int dim, const T& value) const {
    DimList copy = *this;
    copy[dim] = value;
    return copy;
  }

  friend bool operator==(const DimList& a, const DimList& b) {
    if (a.size_ != b.size_) return false;
    for (int i = 0; i < a.size_; ++i)
      if (!(a.dims_[i] == b.dims_[i])) return false;
    return true;
  }

 private:
  void assign(std::span<const T> dims) {
    OBELISK_CHECK(dims.size() <= kMaxDims, ShapeError, "shape: at most {} dims; got {}", kMaxDims,
                  dims.size());
    for (const T& dim : dims) dims_[size_++] = dim;
  }
  int check(int dim) const {
    OBELISK_CHECK(dim >= 0 && dim < size_, Bug, "bug: dim {} of a shape with {} dims", dim, size_);
    return dim;
  }

  std::array<T, kMaxDims> dims_{};
  int size_ = 0;
};

using Shape = DimList<int64_t>;
using Strides = DimList<int64_t>;

// Number of elements; 1 for a scalar (no dims).
int64_t num_elements(const Shape& shape);
Strides contiguous_strides(const Shape& shape);
std::string to_string(const Shape& shape);

}  // namespace obelisk
