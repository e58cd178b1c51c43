#include "framework/tensor/context.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "framework/base/error.h"

namespace obelisk {
namespace {

thread_local ExecContext* current_context = nullptr;

// Ranges for each thread: enough that a thread which the system holds back costs little.
constexpr int64_t kRangesPerThread = 4;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

ExecContext::ExecContext(ExecOptions options)
    : device_(options.device),
      num_threads_(options.num_threads),
      allocator_(options.allocator ? std::move(options.allocator)
                                   : std::shared_ptr<Allocator>(make_cpu_allocator())),
      pool_(num_threads_) {
  OBELISK_CHECK(num_threads_ >= 1, DeviceError,
                "context: number of threads must be at least 1; got {}; set threads in the recipe",
                num_threads_);
}

void ExecContext::parallel_for(int64_t n, int64_t grain,
                               FunctionRef<void(int64_t, int64_t)> body) const {
  run_ranges(n, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

int ExecContext::num_ranges(int64_t n, int64_t grain) const {
  OBELISK_ASSERT(grain > 0);
  if (num_threads_ == 1) return 1;
  return static_cast<int>(std::min<int64_t>(
      {num_threads_ * kRangesPerThread, ThreadPool::kMaxParts, ceil_div(n, grain)}));
}

void ExecContext::run_ranges(int64_t n, int64_t grain,
                             FunctionRef<void(int64_t, int64_t, int)> body) const {
  if (n <= 0) return;
  const int parts = num_ranges(n, grain);
  if (parts == 1) return body(0, n, 0);
  const int64_t num_blocks = ceil_div(n, grain);
  std::exception_ptr error;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  const bool ran = pool_.run(parts, [&](int part, int thread) {
    const int64_t begin = num_blocks * part / parts * grain;
    const int64_t end = std::min(n, num_blocks * (part + 1) / parts * grain);
    try {
      body(begin, end, thread);
    } catch (...) {
      if (!failed.test_and_set()) error = std::current_exception();
    }
  });
  if (!ran) return body(0, n, 0);
  if (error) std::rethrow_exception(error);
}

void ExecContext::for_each_block(int64_t n, int64_t block_size,
                                 FunctionRef<void(int64_t, int64_t, int64_t)> body) const {
  OBELISK_ASSERT(block_size > 0);
  parallel_for(ceil_div(n, block_size), 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block)
      body(block, block * block_size, std::min(n, (block + 1) * block_size));
  });
}

ExecContext& ExecContext::current() {
  OBELISK_CHECK(current_context != nullptr, Bug,
                "bug: no execution context on this thread; open an ExecScope first");
  return *current_context;
}

ExecScope::ExecScope(ExecContext& context) : outer_(current_context) { current_context = &context; }
ExecScope::~ExecScope() { current_context = outer_; }

}  // namespace obelisk
