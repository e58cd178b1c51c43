// Caching allocator of tensor memory, with statistics and a limit.
//
// Freed blocks are kept by size class and handed out again, so that from the second training step
// on no memory is taken from the system. Blocks are 64-byte aligned (a cache line, and the widest
// vector). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace obelisk {

struct AllocatorStats {
  int64_t bytes_in_use = 0;            // handed out now, in whole size classes
  int64_t peak_bytes_in_use = 0;       // since construction or reset_peak()
  int64_t bytes_reserved = 0;          // taken from the system: in use or cached
  int64_t num_allocations = 0;         // allocate() calls
  int64_t num_system_allocations = 0;  // those that had to ask the system
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Never null; an empty request gets a valid block. Throws OutOfMemory: what was asked, by whom
  // (the op and the module path of the running scope), and what to change.
  virtual void* allocate(size_t bytes) = 0;
  virtual void deallocate(void* block, size_t bytes) noexcept = 0;
  virtual AllocatorStats stats() const = 0;
  virtual void reset_peak() = 0;
  // Returns cached blocks to the system.
  virtual void release_cached() = 0;
};

// limit_bytes: allocations that would take more from the system are refused with OutOfMemory; 0
// means no limit of ours.
std::unique_ptr<Allocator> make_cpu_allocator(int64_t limit_bytes = 0);

// The size class of a request: the bytes a block really has. Exact powers of two split in eight, so
// waste is below 12.5 %.
size_t allocation_size_class(size_t bytes);

}  // namespace obelisk
