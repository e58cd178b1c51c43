// The machine's limits, one JSON line: bench_peak [THREADS]
//
//   fma_gflops   f32 fused multiply-adds in registers, all threads
//   read_gbs, copy_gbs, adamw_gbs   memory streams over arrays of 256 MiB (copy counts its read and
//                its write; adamw is four reads and three writes)
//
// Each is the best of several tries, since anything else on the machine only takes away.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "framework/tensor/tensor.h"
#include "tests/bench/peak_kernels.h"

namespace obelisk::bench {
namespace {

template <typename F>
double best_seconds(int tries, F&& body) {
  double best = 1e30;
  for (int i = 0; i < tries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

double fma_gflops(const ExecContext& context) {
  constexpr int64_t kRounds = 20'000'000;
  const int threads = context.num_threads();
  Tensor sinks = full({threads * 16}, DType::F32, 1.0);  // a cache line each
  Tensor done = zeros({threads * 8}, DType::F64);
  const double seconds = best_seconds(5, [&] {
    context.parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        done.data<double>()[i * 8] = fma_chains(kRounds, sinks.data<float>() + i * 16);
    });
  });
  return done.data<double>()[0] * threads / seconds / 1e9;
}

// Gigabytes a second of a loop over [begin, end) that moves `streams` floats an element.
template <typename F>
double stream_gbs(const ExecContext& context, int64_t n, double streams, F&& body) {
  const double seconds = best_seconds(7, [&] {
    context.parallel_for(n, 1 << 12, [&](int64_t begin, int64_t end) { body(begin, end - begin); });
  });
  return streams * static_cast<double>(n) * sizeof(float) / seconds / 1e9;
}

int run(int threads) {
  ExecContext context({.num_threads = threads});
  ExecScope scope(context);
  constexpr int64_t kElements = 64 << 20;
  const Tensor g = full({kElements}, DType::F32, 1e-3), m = zeros({kElements}, DType::F32),
               v = zeros({kElements}, DType::F32), w = zeros({kElements}, DType::F32);
  float *pg = g.data<float>(), *pm = m.data<float>(), *pv = v.data<float>(), *pw = w.data<float>();
  const double fma = fma_gflops(context);
  const double copied =
      stream_gbs(context, kElements, 2, [&](int64_t i, int64_t n) { copy(pg + i, pm + i, n); });
  const double adamw = stream_gbs(context, kElements, 7, [&](int64_t i, int64_t n) {
    four_reads_three_writes(pg + i, pm + i, pv + i, pw + i, n);
  });
  const Tensor sums = zeros({threads * 16}, DType::F32);
  const double read_rate = stream_gbs(context, kElements, 1, [&](int64_t i, int64_t n) {
    sums.data<float>()[i / (kElements / threads + 1) * 16] = read(pg + i, n);
  });
  fmt::print(
      "{{\"threads\":{},\"fma_gflops\":{:.1f},\"read_gbs\":{:.2f},\"copy_gbs\":{:.2f},"
      "\"adamw_gbs\":{:.2f}}}\n",
      threads, fma, read_rate, copied, adamw);
  return 0;
}

}  // namespace
}  // namespace obelisk::bench

int main(int argc, char** argv) {
  return obelisk::bench::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 1);
}
