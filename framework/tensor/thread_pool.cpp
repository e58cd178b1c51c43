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

bool ThreadPool::run(FunctionRef<void(int)> body) {
  if (inside_body) return false;
  const std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock) return false;
  body_ = &body;
  running_.store(static_cast<int32_t>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  inside_body = true;
  body(0);
  inside_body = false;
  for (int32_t left = running_.load(std::memory_order_acquire); left != 0;)
    left = wait_for_change(running_, left);
  return true;
}

void ThreadPool::work(int index) {
  inside_body = true;
  uint32_t seen = 0;
  while (true) {
    seen = wait_for_change(round_, seen);
    if (stopping_) return;
    (*body_)(index);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace obelisk
