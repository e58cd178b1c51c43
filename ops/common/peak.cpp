#include "ops/common/peak.h"

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "framework/tensor/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/common/peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `rounds` times 12 independent chains; returns the operations done. `sink` keeps the work alive.
double multiply_add_chains(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  // Latency 4 times rate 2 asks for 8 chains; 12 leave slack and still fit 16 registers.
  // Each starts elsewhere: the compiler makes one of equal chains.
  const float x = sink[0];
  auto s0 = hn::Set(d, x), s1 = hn::Set(d, x + 1), s2 = hn::Set(d, x + 2);
  auto s3 = hn::Set(d, x + 3), s4 = hn::Set(d, x + 4), s5 = hn::Set(d, x + 5);
  auto s6 = hn::Set(d, x + 6), s7 = hn::Set(d, x + 7), s8 = hn::Set(d, x + 8);
  auto s9 = hn::Set(d, x + 9), s10 = hn::Set(d, x + 10), s11 = hn::Set(d, x + 11);
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 1e-3f);
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, a, b), s1 = hn::MulAdd(s1, a, b), s2 = hn::MulAdd(s2, a, b);
    s3 = hn::MulAdd(s3, a, b), s4 = hn::MulAdd(s4, a, b), s5 = hn::MulAdd(s5, a, b);
    s6 = hn::MulAdd(s6, a, b), s7 = hn::MulAdd(s7, a, b), s8 = hn::MulAdd(s8, a, b);
    s9 = hn::MulAdd(s9, a, b), s10 = hn::MulAdd(s10, a, b), s11 = hn::MulAdd(s11, a, b);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)),
                           hn::Add(hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)),
                                   hn::Add(hn::Add(s8, s9), hn::Add(s10, s11))));
  sink[0] = hn::GetLane(hn::SumOfLanes(d, sum));
  return 2.0 * 12.0 * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}

}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
namespace {

HWY_EXPORT(multiply_add_chains);

constexpr int64_t kSinkStride = 16;  // floats: a cache line for each thread

// Chains of one thread: `rounds` rounds of them, the operations done.
using Chains = double (*)(int64_t rounds, float* sink);

double f32_chains(int64_t rounds, float* sink) {
  return HWY_DYNAMIC_DISPATCH(multiply_add_chains)(rounds, sink);
}

#if defined(__x86_64__)
// As multiply_add_chains; an operation is two products and two additions a lane.
__attribute__((target("avx512f,avx512bf16"))) double bf16_chains(int64_t rounds, float* sink) {
  __m512 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(sink[0] + static_cast<float>(i));
  const auto ones = (__m512bh)_mm512_set1_epi16(0x3F80);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], ones, ones);
  float total = 0;
  for (const __m512& sum : sums) total += sum[0];
  sink[0] = total > 0 ? 1.0f : 0.0f;
  return 4.0 * 12.0 * 16.0 * static_cast<double>(rounds);
}
#endif

Chains best_bf16_chains() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return bf16_chains;
#endif
  return f32_chains;
}

struct Try {
  double seconds, operations;
};

Try run_chains(const ExecContext& context, Chains chains, int64_t rounds, const Tensor& sinks) {
  const int threads = context.num_threads();
  Try result{0, 0};
  const auto begin = std::chrono::steady_clock::now();
  context.parallel_for(threads, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      float* sink = sinks.data<float>() + i * kSinkStride;
      sink[1] = static_cast<float>(chains(rounds, sink) / static_cast<double>(rounds));
    }
  });
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.operations = sinks.data<float>()[1] * static_cast<double>(rounds) * threads;
  return result;
}

double best_rate(const ExecContext& context, Chains chains, double seconds) {
  const Tensor sinks = full({context.num_threads() * kSinkStride}, DType::F32, 1.0);
  constexpr int kTries = 5;
  int64_t rounds = 1000;
  Try one = run_chains(context, chains, rounds, sinks);
  // Long enough to matter beside the waking of threads.
  while (one.seconds < 1e-3) one = run_chains(context, chains, rounds *= 2, sinks);
  const double wanted = std::max(1e-3, seconds / (kTries + 1));
  rounds = std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(rounds) * wanted / one.seconds));
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    one = run_chains(context, chains, rounds, sinks);
    best = std::max(best, one.operations / one.seconds);
  }
  return best;
}

}  // namespace

double measure_multiply_add_rate(const ExecContext& context, double seconds) {
  return best_rate(context, f32_chains, seconds);
}

double measure_bf16_dot_rate(const ExecContext& context, double seconds) {
  return best_rate(context, best_bf16_chains(), seconds);
}

}  // namespace obelisk::ops
#endif
