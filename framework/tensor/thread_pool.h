// ThreadPool: the threads behind one execution context.
//
// Not OpenMP: its threads either spin between regions, which on a machine with other work slows a
// step tenfold and more, or sleep at once, which costs a wake-up a kernel. These spin for a moment
// and then sleep. And nobody waits for a thread that has not begun: parts are claimed one by one,
// so the caller does itself what a thread that the system holds back has not come to.
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
  static constexpr int kMaxParts = 0xFFFF;

  // num_threads counts the caller: one makes no thread.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(part, thread) for each part in [0, num_parts) once, on this thread, which is number
  // 0, and the others, and returns when all are done. Bodies must not throw. False, and nothing is
  // called, when the pool is busy: a call from inside a body, or from a second thread. num_parts:
  // at most kMaxParts.
  bool run(int num_parts, FunctionRef<void(int part, int thread)> body);

 private:
  void work(int thread);
  // Claims and runs parts of the round in progress until none is left.
  void run_parts(int thread);

  std::vector<std::thread> workers_;
  std::mutex busy_;
  const FunctionRef<void(int, int)>* body_ = nullptr;
  std::atomic<uint32_t> round_ = 0;  // a change starts the workers
  // Round, number of parts, next part: one word, so that a thread that comes late cannot claim a
  // part of a round that it has not seen the body of.
  std::atomic<uint64_t> ticket_ = 0;
  std::atomic<int32_t> unfinished_ = 0;  // parts of this round
  std::atomic<bool> stopping_ = false;
};

}  // namespace obelisk
