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

#include "framework/tensor/dtype.h"

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

// bf16 is a format of memory: loads widen it to f32 exactly, stores round to nearest even (as
// bfloat16_from does, NaN included).
template <class D32, class V16>
HWY_INLINE hn::Vec<D32> widen_bits(D32 d, V16 bits) {
  const hn::RebindToUnsigned<D32> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}
template <class D32>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D32>> rounded_bits(D32 /* tag */, hn::Vec<D32> v) {
  const hn::RebindToUnsigned<D32> du;
  const hn::RebindToSigned<D32> di;
  const hn::Rebind<uint16_t, D32> d16;
  const auto bits = hn::BitCast(du, v);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto even = hn::Add(hn::Set(du, 0x7FFFu), hn::And(upper, hn::Set(du, 1u)));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, even));
  const auto quiet = hn::Or(upper, hn::Set(du, 0x0040u));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
  return hn::DemoteTo(d16, hn::BitCast(di, hn::IfThenElse(is_nan, quiet, rounded)));
}

// Lanes of type Compute<T> from and to elements of type T, aligned to elements only.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::Rebind<uint16_t, D> d16;
    return widen_bits(d, hn::LoadU(d16, &p->bits));
  } else {
    return hn::LoadU(d, p);
  }
}
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* p, size_t n) {  // as load_partial
  if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::Rebind<uint16_t, D> d16;
    return widen_bits(d, load_partial(d16, &p->bits, n));
  } else {
    return load_partial(d, p, n);
  }
}
template <class D, typename T>
HWY_INLINE void store(hn::Vec<D> v, D d, T* p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::Rebind<uint16_t, D> d16;
    hn::StoreU(rounded_bits(d, v), d16, &p->bits);
  } else {
    hn::StoreU(v, d, p);
  }
}
template <class D, typename T>
HWY_INLINE void store(hn::Vec<D> v, D d, T* p, size_t n) {  // as store_partial
  if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::Rebind<uint16_t, D> d16;
    store_partial(rounded_bits(d, v), d16, &p->bits, n);
  } else {
    store_partial(v, d, p, n);
  }
}

// y[i] = f(x[i]) over vectors of Compute<Y>, which is X's too; f maps Vec to Vec. In-place use (y
// == x) is allowed.
template <typename X, typename Y, class F>
HWY_INLINE void map_unary(const X* x, Y* y, int64_t n, F&& f) {
  const hn::ScalableTag<Compute<Y>> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(f(load(d, x + i)), d, y + i);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    store(f(load(d, x + i, rest)), d, y + i, rest);
  }
}

// y[i] = f(a[i], b[i]).
template <typename A, typename B, typename Y, class F>
HWY_INLINE void map_binary(const A* a, const B* b, Y* y, int64_t n, F&& f) {
  const hn::ScalableTag<Compute<Y>> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(f(load(d, a + i), load(d, b + i)), d, y + i);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    store(f(load(d, a + i, rest), load(d, b + i, rest)), d, y + i, rest);
  }
}

}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // OBELISK_OPS_SIMD_INL_H_
