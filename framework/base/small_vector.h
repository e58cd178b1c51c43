// SmallVector: boost's small_vector (inline room for N, the heap beyond) that also converts to
// std::span, which boost 1.74's iterators do not allow by themselves.
#pragma once

#include <boost/container/small_vector.hpp>
#include <span>

namespace obelisk {

template <typename T, std::size_t N>
class SmallVector : public boost::container::small_vector<T, N> {
  using Base = boost::container::small_vector<T, N>;

 public:
  using Base::Base;
  operator std::span<const T>() const { return {this->data(), this->size()}; }  // NOLINT: implicit
  operator std::span<T>() { return {this->data(), this->size()}; }              // NOLINT: implicit
};

}  // namespace obelisk
