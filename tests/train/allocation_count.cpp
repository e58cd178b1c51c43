#include "tests/train/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> calls{0};
}  // namespace

namespace obelisk {
int64_t allocation_count() { return calls.load(); }
}  // namespace obelisk

// The array and nothrow forms of the standard library end in these; over-aligned blocks do not, and
// are not counted.
void* operator new(std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (void* block = std::malloc(size == 0 ? 1 : size)) return block;
  throw std::bad_alloc();
}

void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
