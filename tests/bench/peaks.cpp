#include "tests/bench/peaks.h"

#include <algorithm>
#include <chrono>

#include "framework/tensor/tensor.h"
#include "ops/common/peak.h"
#include "tests/bench/peak_kernels.h"

namespace obelisk::bench {
namespace {

// Bytes a second of a loop over [0, n) that moves `streams` floats an element.
template <typename F>
double stream_rate(const ExecContext& context, int64_t n, double streams, F&& body) {
  double best = 0;
  for (int i = 0; i < 7; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    context.parallel_for(n, 1 << 12,
                         [&](int64_t first, int64_t last) { body(first, last - first); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, streams * static_cast<double>(n) * sizeof(float) / seconds.count());
  }
  return best;
}

}  // namespace

Peaks measure_peaks(const ExecContext& context, int64_t stream_mib) {
  const int64_t n = stream_mib << 18;
  const Tensor g = full({n}, DType::F32, 1e-3), m = zeros({n}, DType::F32),
               v = zeros({n}, DType::F32), w = zeros({n}, DType::F32);
  float *pg = g.data<float>(), *pm = m.data<float>(), *pv = v.data<float>(), *pw = w.data<float>();
  Peaks peaks;
  peaks.fma_flops = ops::measure_multiply_add_rate(context, 0.5);
  peaks.bf16_flops = std::max(peaks.fma_flops, ops::measure_bf16_dot_rate(context, 0.5));
  peaks.copy_bytes =
      stream_rate(context, n, 2, [&](int64_t i, int64_t count) { copy(pg + i, pm + i, count); });
  peaks.adamw_bytes = stream_rate(context, n, 7, [&](int64_t i, int64_t count) {
    four_reads_three_writes(pg + i, pm + i, pv + i, pw + i, count);
  });
  const int64_t part = n / context.num_threads() + 1;
  const Tensor sums = zeros({context.num_threads() * int64_t{16}}, DType::F32);
  peaks.read_bytes = stream_rate(context, n, 1, [&](int64_t i, int64_t count) {
    sums.data<float>()[i / part * 16] = read(pg + i, count);
  });
  return peaks;
}

}  // namespace obelisk::bench
