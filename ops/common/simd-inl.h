// Vector helpers for kernels written with Highway. Per-target header: include it after
// foreach_target.h, without a once guard of the usual kind.
//
// Rule for results that do not depend on how a range is cut: tails run the very same vector code on
// a partial vector, never a scalar formula of their own.
#if defined(OBELISK_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OBELISK_OPS_SIMD_INL_H_
#undef OBELISK_OPS_SIMD_INL_H_
#else
#define OBELISK_OPS_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first n lanes from memory, the others zero; reads no byte beyond them. 0 < n <= Lanes(d).
template <class D>
HWY_INLINE hn::Vec<D> load_partial(D d, const hn::TFromD<D>* HWY_RESTRICT p, size_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)] = {};
  std::memcpy(lanes, p, n * sizeof(hn::TFromD<D>));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#endif
}

// Writes the first n lanes and no other byte.
template <class D>
HWY_INLINE void store_partial(hn::Vec<D> v, D d, hn::TFromD<D>* HWY_RESTRICT p, size_t n) {
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(v, d, lanes);
  std::memcpy(p, lanes, n * sizeof(hn::TFromD<D>));
}

// y[i] = f(x[i]) over vectors; f maps Vec to Vec. In-place use (y == x) is allowed.
template <typename T, class F>
HWY_INLINE void map_unary(const T* x, T* y, int64_t n, F&& f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    store_partial(f(load_partial(d, x + i, rest)), d, y + i, rest);
  }
}

// y[i] = f(a[i], b[i]).
template <typename T, class F>
HWY_INLINE void map_binary(const T* a, const T* b, T* y, int64_t n, F&& f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(f(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    store_partial(f(load_partial(d, a + i, rest), load_partial(d, b + i, rest)), d, y + i, rest);
  }
}

}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // OBELISK_OPS_SIMD_INL_H_
