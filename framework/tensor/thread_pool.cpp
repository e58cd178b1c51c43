#include "framework/tensor/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace obelisk {
namespace {

// Some 20 microseconds: longer than the gap between two kernels of a step, shorter than anybody
// minds.
constexpr int kSpins = 500;

thread_local bool inside_body = false;

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns once value differs from `old`.
template <typename T>
T wait_for_change(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    const T now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause_briefly();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  for (int index = 1; index < num_threads; ++index)
    workers_.emplace_back([this, index] { work(index); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::run(int num_parts, FunctionRef<void(int, int)> body) {
  if (inside_body) return false;
  const std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock) return false;
  body_ = &body;
  unfinished_.store(num_parts, std::memory_order_relaxed);
  const uint64_t round = round_.load(std::memory_order_relaxed) + uint64_t{1};
  ticket_.store(round << 32 | static_cast<uint64_t>(num_parts) << 16, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  inside_body = true;
  run_parts(0);
  inside_body = false;
  for (int32_t left = unfinished_.load(std::memory_order_acquire); left != 0;)
    left = wait_for_change(unfinished_, left);
  return true;
}

void ThreadPool::run_parts(int thread) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (true) {
    const uint64_t parts = ticket >> 16 & 0xFFFF, next = ticket & 0xFFFF;
    if (next == parts) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
      continue;
    // A claimed part keeps its round alive, and with it the body.
    (*body_)(static_cast<int>(next), thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::work(int thread) {
  inside_body = true;
  uint32_t seen = 0;
  while (true) {
    seen = wait_for_change(round_, seen);
    if (stopping_) return;
    run_parts(thread);
  }
}

}  // namespace obelisk
