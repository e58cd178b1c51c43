#include "framework/tensor/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/scope.h"
#include "framework/base/units.h"

namespace obelisk {
namespace {

constexpr size_t kAlignment = 64;

class CpuAllocator final : public Allocator {
 public:
  explicit CpuAllocator(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~CpuAllocator() override { release_cached(); }

  void* allocate(size_t bytes) override {
    const size_t size = allocation_size_class(bytes);
    std::lock_guard lock(mutex_);
    ++stats_.num_allocations;
    void* block = take_cached(size);
    if (block == nullptr) block = take_from_system(size, bytes);
    stats_.bytes_in_use += static_cast<int64_t>(size);
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    return block;
  }

  void deallocate(void* block, size_t bytes) noexcept override {
    const size_t size = allocation_size_class(bytes);
    std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= static_cast<int64_t>(size);
    // The list has room for every block of its class since take_from_system() reserved it: no
    // allocation here.
    cached_.find(size)->second.blocks.push_back(block);
  }

  AllocatorStats stats() const override {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() override {
    std::lock_guard lock(mutex_);
    stats_.peak_bytes_in_use = stats_.bytes_in_use;
  }

  void release_cached() override {
    std::lock_guard lock(mutex_);
    release_cached_locked();
  }

 private:
  struct SizeClass {
    std::vector<void*> blocks;  // free now
    size_t num_blocks = 0;      // free or in use
  };

  void* take_cached(size_t size) {
    auto found = cached_.find(size);
    if (found == cached_.end() || found->second.blocks.empty()) return nullptr;
    void* block = found->second.blocks.back();
    found->second.blocks.pop_back();
    return block;
  }

  void* take_from_system(size_t size, size_t asked) {
    // Cached blocks of other sizes are given back before a request is refused.
    if (exceeds_limit(size)) release_cached_locked();
    void* block = exceeds_limit(size) ? nullptr : std::aligned_alloc(kAlignment, size);
    if (block == nullptr) {
      release_cached_locked();
      if (!exceeds_limit(size)) block = std::aligned_alloc(kAlignment, size);
    }
    if (block == nullptr) refuse(asked);
    SizeClass& size_class = cached_[size];
    ++size_class.num_blocks;
    size_class.blocks.reserve(size_class.num_blocks);
    stats_.bytes_reserved += static_cast<int64_t>(size);
    ++stats_.num_system_allocations;
    return block;
  }

  bool exceeds_limit(size_t size) const {
    return limit_bytes_ > 0 && stats_.bytes_reserved + static_cast<int64_t>(size) > limit_bytes_;
  }

  [[noreturn]] void refuse(size_t asked) const {
    const std::string limit =
        limit_bytes_ > 0 ? bytes_text(static_cast<double>(limit_bytes_)) : "the system's";
    raise<OutOfMemory>(
        "cpu memory: a request must fit the limit; got {} asked by {}, {} in use, limit {}; lower "
        "batch.micro_batch_size or batch.sequence_length, use a smaller model, or raise "
        "run.memory_limit_gib",
        bytes_text(static_cast<double>(asked)), describe_scope(),
        bytes_text(static_cast<double>(stats_.bytes_in_use)), limit);
  }

  void release_cached_locked() {
    for (auto& [size, size_class] : cached_) {
      for (void* block : size_class.blocks) std::free(block);
      stats_.bytes_reserved -= static_cast<int64_t>(size * size_class.blocks.size());
      size_class.num_blocks -= size_class.blocks.size();
      size_class.blocks.clear();
    }
  }

  const int64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::map<size_t, SizeClass> cached_;
  AllocatorStats stats_;
};

}  // namespace

size_t allocation_size_class(size_t bytes) {
  constexpr size_t kSmallest = 64;
  if (bytes <= kSmallest) return kSmallest;
  // Steps of an eighth of the power of two below, but never below the alignment.
  const size_t step = std::max(kAlignment, std::bit_floor(bytes - 1) / 8);
  return (bytes + step - 1) / step * step;
}

std::unique_ptr<Allocator> make_cpu_allocator(int64_t limit_bytes) {
  return std::make_unique<CpuAllocator>(limit_bytes);
}

}  // namespace obelisk
