// ExecContext: where and how kernels run: device, allocator, threads, and the caches that ops keep
// between calls.
//
// Kernels get it as an argument; user code sets it with ExecScope. It is not a process singleton,
// since asynchronous reinforcement learning runs a rollout and a learner side by side, each with a
// context and a thread pool of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <typeindex>
#include <unordered_map>

#include "framework/base/function_ref.h"
#include "framework/tensor/allocator.h"
#include "framework/tensor/device.h"
#include "framework/tensor/thread_pool.h"

namespace obelisk {

struct ExecOptions {
  Device device = {};
  int num_threads = 1;
  std::shared_ptr<Allocator> allocator = nullptr;  // null: a new CPU allocator without a limit
};

class ExecContext {
 public:
  explicit ExecContext(ExecOptions options = {});
  ExecContext(const ExecContext&) = delete;
  ExecContext& operator=(const ExecContext&) = delete;

  const Device& device() const { return device_; }
  int num_threads() const { return num_threads_; }
  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }

  // Calls body(begin, end) over ranges that partition [0, n), from several threads. Ranges begin at
  // multiples of `grain` (the last may be short); there are a few for each thread, which claims one
  // after the other. Their number depends on the thread count: results must not depend on it. The
  // first exception is rethrown here. A call from inside a body runs serially.
  void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) const;

  // Calls body(block, begin, end) exactly once for each block of `block_size` items (the last may
  // be short), whatever the thread count. Reductions keep one partial result a block and add them
  // in block order: the same bits on any number of threads.
  void for_each_block(int64_t n, int64_t block_size,
                      FunctionRef<void(int64_t, int64_t, int64_t)> body) const;

  // parallel_for with `size` elements of scratch memory for each thread, undefined at a range's
  // start: body(begin, end, scratch). One allocation made here, whatever the threads then do:
  // scratch taken inside a body would make the memory of a step depend on how threads overlap.
  template <typename T, typename Body>
  void parallel_for_with_scratch(int64_t n, int64_t grain, int64_t size, Body&& body);

  // A cache of type T that lives as long as the context, made at its first use.
  template <typename T>
  T& state() {
    std::shared_ptr<void>& slot = states_[std::type_index(typeid(T))];
    if (!slot) slot = std::make_shared<T>();
    return *static_cast<T*>(slot.get());
  }

  // The context of this thread's innermost ExecScope. Throws Bug when there is none.
  static ExecContext& current();

 private:
  // What parallel_for cuts [0, n) into.
  int num_ranges(int64_t n, int64_t grain) const;
  // body(begin, end, thread): one range after the other on each of the threads 0, 1, ...
  void run_ranges(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t, int)> body) const;

  Device device_;
  int num_threads_;
  std::shared_ptr<Allocator> allocator_;
  mutable ThreadPool pool_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> states_;
};

class ExecScope {
 public:
  explicit ExecScope(ExecContext& context);
  ~ExecScope();
  ExecScope(const ExecScope&) = delete;
  ExecScope& operator=(const ExecScope&) = delete;

 private:
  ExecContext* outer_;
};

// Scratch memory from the context's allocator, given back at the end of the scope. Contents are
// undefined.
template <typename T>
class Workspace {
 public:
  Workspace(ExecContext& context, int64_t count)
      : allocator_(*context.allocator()),
        bytes_(static_cast<size_t>(count) * sizeof(T)),
        data_(static_cast<T*>(allocator_.allocate(bytes_))) {}
  ~Workspace() { allocator_.deallocate(data_, bytes_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  Allocator& allocator_;
  size_t bytes_;
  T* data_;
};

template <typename T, typename Body>
void ExecContext::parallel_for_with_scratch(int64_t n, int64_t grain, int64_t size, Body&& body) {
  if (n <= 0) return;
  const Workspace<T> scratch(*this, (num_ranges(n, grain) == 1 ? 1 : num_threads_) * size);
  run_ranges(n, grain, [&](int64_t begin, int64_t end, int thread) {
    body(begin, end, scratch.data() + thread * size);
  });
}

}  // namespace obelisk
