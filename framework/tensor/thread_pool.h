// ThreadPool: the threads behind one execution context.
//
// Not OpenMP: its threads either spin between regions, which on a machine with other work slows a
// step tenfold and more, or sleep at once, which costs a wake-up a kernel. These spin for a moment
// and then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/base/function_ref.h"

namespace obelisk {

class ThreadPool {
 public:
  // num_threads counts the caller: one makes no thread.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(0) here and body(1) ... body(num_threads - 1) on the others, and returns when all
  // are done. Bodies must not throw. False, and nothing is called, when the pool is busy: a call
  // from inside a body, or from a second thread.
  bool run(FunctionRef<void(int)> body);

 private:
  void work(int index);

  std::vector<std::thread> workers_;
  std::mutex busy_;
  const FunctionRef<void(int)>* body_ = nullptr;
  std::atomic<uint32_t> round_ = 0;   // a change starts the workers
  std::atomic<int32_t> running_ = 0;  // workers not done with this round
  std::atomic<bool> stopping_ = false;
};

}  // namespace obelisk
