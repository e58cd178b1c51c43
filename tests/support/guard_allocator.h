// An allocator that surrounds every block with guard bytes and fills it with NaNs, to catch kernels
// that write outside their buffers or read what nobody wrote.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "framework/base/error.h"
#include "framework/tensor/allocator.h"

namespace obelisk {

class GuardAllocator final : public Allocator {
 public:
  // shift_bytes moves every block off the 64-byte alignment.
  explicit GuardAllocator(size_t shift_bytes = 0) : shift_(shift_bytes) {}

  void* allocate(size_t bytes) override {
    // An exact fit: the byte after the last element is already a guard.
    auto* base = static_cast<uint8_t*>(std::aligned_alloc(64, total(bytes)));
    std::memset(base, kGuard, total(bytes));
    std::memset(base + kMargin + shift_, 0xFF, bytes);  // NaN as f32, f64 and bf16
    ++stats_.num_allocations;
    stats_.bytes_in_use += static_cast<int64_t>(bytes);
    return base + kMargin + shift_;
  }

  void deallocate(void* block, size_t bytes) noexcept override {
    auto* base = static_cast<uint8_t*>(block) - kMargin - shift_;
    for (size_t i = 0; i < total(bytes); ++i)
      if ((i < kMargin + shift_ || i >= kMargin + shift_ + bytes) && base[i] != kGuard) ++damage_;
    stats_.bytes_in_use -= static_cast<int64_t>(bytes);
    std::free(base);
  }

  AllocatorStats stats() const override { return stats_; }
  void reset_peak() override {}
  void release_cached() override {}

  // Guard bytes found changed in blocks that were given back.
  int64_t damage() const { return damage_; }

 private:
  static constexpr size_t kMargin = 256;
  static constexpr uint8_t kGuard = 0xA5;
  size_t total(size_t bytes) const { return (bytes + 2 * kMargin + shift_ + 63) / 64 * 64; }

  size_t shift_;
  int64_t damage_ = 0;
  AllocatorStats stats_;
};

}  // namespace obelisk
