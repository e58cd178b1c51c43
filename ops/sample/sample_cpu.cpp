#include <algorithm>

#include "ops/sample/sample_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sample/sample_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway's headers stand after foreach_target.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

#ifndef OBELISK_OPS_SAMPLE_TABLES_
#define OBELISK_OPS_SAMPLE_TABLES_
namespace obelisk::ops {
namespace {

template <typename T>
struct SampleRanges {
  double (*largest)(const T* logits, int64_t n, bool& bad);
  void (*weights)(const T* logits, int64_t n, double largest, double temperature, double* weights);
};
struct SampleTable {
  SampleRanges<float> f32;
  SampleRanges<double> f64;
};

}  // namespace
}  // namespace obelisk::ops
#endif  // OBELISK_OPS_SAMPLE_TABLES_

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

template <typename T>
double largest_range(const T* logits, int64_t n, bool& bad) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto infinity = hn::Inf(d);
  auto largest = hn::Neg(infinity);
  auto is_bad = hn::FirstN(d, 0);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, n - i));
    const auto v =
        count == static_cast<size_t>(lanes)
            ? hn::LoadU(d, logits + i)
            : hn::IfThenElse(hn::FirstN(d, count), load_partial(d, logits + i, count), largest);
    is_bad = hn::Or(is_bad, hn::Or(hn::IsNaN(v), hn::Eq(v, infinity)));
    largest = hn::Max(largest, v);
  }
  bad = !hn::AllFalse(d, is_bad);
  return static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, largest)));
}

template <typename T>
void weights_range(const T* logits, int64_t n, double largest, double temperature,
                   double* weights) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> dt;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, largest), divisor = hn::Set(d, temperature);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, n - i));
    const bool whole = count == static_cast<size_t>(lanes);
    const auto loaded = whole ? hn::LoadU(dt, logits + i) : load_partial(dt, logits + i, count);
    hn::Vec<decltype(d)> x;
    if constexpr (sizeof(T) == sizeof(double)) {
      x = loaded;
    } else {
      x = hn::PromoteTo(d, loaded);
    }
    const auto weight = hn::Exp(d, hn::Div(hn::Sub(x, shift), divisor));
    if (whole) {
      hn::StoreU(weight, d, weights + i);
    } else {
      store_partial(weight, d, weights + i, count);
    }
  }
}

const SampleTable* sample_table() {
  static constexpr SampleTable kTable{{&largest_range<float>, &weights_range<float>},
                                      {&largest_range<double>, &weights_range<double>}};
  return &kTable;
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
namespace {

HWY_EXPORT(sample_table);

template <typename T>
const SampleRanges<T>& ranges() {
  if constexpr (std::is_same_v<T, float>) {
    return HWY_DYNAMIC_DISPATCH(sample_table)()->f32;
  } else {
    return HWY_DYNAMIC_DISPATCH(sample_table)()->f64;
  }
}

}  // namespace

template <typename T>
double largest_logit(const T* logits, int64_t n, bool& bad) {
  return ranges<T>().largest(logits, n, bad);
}
template <typename T>
void softmax_weights(const T* logits, int64_t n, double largest, double temperature,
                     double* weights) {
  ranges<T>().weights(logits, n, largest, temperature, weights);
}
template double largest_logit<float>(const float*, int64_t, bool&);
template double largest_logit<double>(const double*, int64_t, bool&);
template void softmax_weights<float>(const float*, int64_t, double, double, double*);
template void softmax_weights<double>(const double*, int64_t, double, double, double*);

}  // namespace obelisk::ops
#endif  // HWY_ONCE
