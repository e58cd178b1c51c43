#include "tests/bench/peak_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/peak_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace obelisk::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double fma_chains(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  // Latency 4 times rate 2 asks for 8 chains; 12 leave slack and still fit 16 registers.
  auto s0 = hn::Set(d, sink[0]), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0;
  auto s6 = s0, s7 = s0, s8 = s0, s9 = s0, s10 = s0, s11 = s0;
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

void copy(const float* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i + lanes <= n; i += lanes) hn::StoreU(hn::LoadU(d, x + i), d, y + i);
}

float read(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t i = 0; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

void four_reads_three_writes(const float* g, float* m, float* v, float* w, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, g + i);
    hn::StoreU(hn::Add(hn::LoadU(d, m + i), x), d, m + i);
    hn::StoreU(hn::Add(hn::LoadU(d, v + i), x), d, v + i);
    hn::StoreU(hn::Add(hn::LoadU(d, w + i), x), d, w + i);
  }
}

}  // namespace obelisk::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::bench {
namespace {
HWY_EXPORT(fma_chains);
HWY_EXPORT(copy);
HWY_EXPORT(read);
HWY_EXPORT(four_reads_three_writes);
}  // namespace

double fma_chains(int64_t rounds, float* sink) {
  return HWY_DYNAMIC_DISPATCH(fma_chains)(rounds, sink);
}
void copy(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(copy)(x, y, n); }
float read(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(read)(x, n); }
void four_reads_three_writes(const float* g, float* m, float* v, float* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(four_reads_three_writes)(g, m, v, w, n);
}

}  // namespace obelisk::bench
#endif
