// Vector conversions between floats; other pairs convert one element at a time.
#include "ops/layout/cast.h"
#include "ops/layout/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/layout/cast_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway's headers stand after foreach_target.h.
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

// Every element whole vectors cover by f(vectors at i), the rest by scalar conversion, which has
// the same bits.
template <typename From, typename To, class F>
HWY_INLINE void convert_loop(const void* from, void* to, int64_t n, int64_t lanes, F&& f) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(x + i, y + i);
  for (; i < n; ++i) y[i] = convert_element<To>(x[i]);
}

void f32_to_f64(const void* from, void* to, int64_t n) {
  const hn::ScalableTag<double> d64;
  const hn::Rebind<float, decltype(d64)> d32;
  convert_loop<float, double>(from, to, n, hn::Lanes(d64), [&](const float* x, double* y) HWY_ATTR {
    hn::StoreU(hn::PromoteTo(d64, hn::LoadU(d32, x)), d64, y);
  });
}

void f64_to_f32(const void* from, void* to, int64_t n) {
  const hn::ScalableTag<double> d64;
  const hn::Rebind<float, decltype(d64)> d32;
  convert_loop<double, float>(from, to, n, hn::Lanes(d64), [&](const double* x, float* y) HWY_ATTR {
    hn::StoreU(hn::DemoteTo(d32, hn::LoadU(d64, x)), d32, y);
  });
}

void f32_to_bf16(const void* from, void* to, int64_t n) {
  const hn::ScalableTag<float> d;
  convert_loop<float, BFloat16>(from, to, n, hn::Lanes(d),
                                [&](const float* x, BFloat16* y)
                                    HWY_ATTR { store(load(d, x), d, y); });
}

void bf16_to_f32(const void* from, void* to, int64_t n) {
  const hn::ScalableTag<float> d;
  convert_loop<BFloat16, float>(from, to, n, hn::Lanes(d),
                                [&](const BFloat16* x, float* y)
                                    HWY_ATTR { store(load(d, x), d, y); });
}

// AVX2 and better convert f16 in hardware, to nearest even and with quiet NaN.
#if HWY_TARGET <= HWY_AVX2
void f32_to_f16(const void* from, void* to, int64_t n) {
  const hn::ScalableTag<float> d32;
  const hn::Rebind<hwy::float16_t, decltype(d32)> d16;
  const hn::Rebind<uint16_t, decltype(d32)> du16;
  convert_loop<float, Float16>(from, to, n, hn::Lanes(d32),
                               [&](const float* x, Float16* y) HWY_ATTR {
                                 const auto half = hn::DemoteTo(d16, hn::LoadU(d32, x));
                                 hn::StoreU(hn::BitCast(du16, half), du16, &y->bits);
                               });
}

void f16_to_f32(const void* from, void* to, int64_t n) {
  const hn::ScalableTag<float> d32;
  const hn::Rebind<hwy::float16_t, decltype(d32)> d16;
  const hn::Rebind<uint16_t, decltype(d32)> du16;
  convert_loop<Float16, float>(from, to, n, hn::Lanes(d32),
                               [&](const Float16* x, float* y) HWY_ATTR {
                                 const auto half = hn::BitCast(d16, hn::LoadU(du16, &x->bits));
                                 hn::StoreU(hn::PromoteTo(d32, half), d32, y);
                               });
}
#endif

// Null where no vector loop serves the pair.
ConvertRange vector_range(DType from, DType to) {
  if (from == DType::F32 && to == DType::F64) return f32_to_f64;
  if (from == DType::F64 && to == DType::F32) return f64_to_f32;
  if (from == DType::F32 && to == DType::BF16) return f32_to_bf16;
  if (from == DType::BF16 && to == DType::F32) return bf16_to_f32;
#if HWY_TARGET <= HWY_AVX2
  if (from == DType::F32 && to == DType::F16) return f32_to_f16;
  if (from == DType::F16 && to == DType::F32) return f16_to_f32;
#endif
  return nullptr;
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
namespace {

HWY_EXPORT(vector_range);

template <typename From, typename To>
void scalar_range(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = convert_element<To>(x[i]);
}

}  // namespace

ConvertRange convert_range(DType from, DType to) {
  if (const ConvertRange range = HWY_DYNAMIC_DISPATCH(vector_range)(from, to)) return range;
  ConvertRange range = nullptr;
  visit_dtype(from, [&]<typename From>() {
    visit_dtype(to, [&]<typename To>() { range = scalar_range<From, To>; });
  });
  return range;
}

}  // namespace obelisk::ops
#endif  // HWY_ONCE
