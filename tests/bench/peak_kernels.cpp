#include "tests/bench/peak_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/peak_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace obelisk::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
HWY_EXPORT(copy);
HWY_EXPORT(read);
HWY_EXPORT(four_reads_three_writes);
}  // namespace

void copy(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(copy)(x, y, n); }
float read(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(read)(x, n); }
void four_reads_three_writes(const float* g, float* m, float* v, float* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(four_reads_three_writes)(g, m, v, w, n);
}

}  // namespace obelisk::bench
#endif
