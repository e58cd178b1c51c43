// The tile of a transposition of 4-byte elements, in registers.
#include "ops/layout/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/layout/transpose_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway's headers stand after foreach_target.h.
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void transpose_tile(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  transpose_rest(from, from_stride, to, to_stride, kTransposeTile, kTransposeTile);
}

#else

// 8 x 8 elements: pairs, then pairs of pairs within 128-bit halves, then the halves change places.
HWY_INLINE void transpose_eight(const uint32_t* from, int64_t from_stride, uint32_t* to,
                                int64_t to_stride) {
  const hn::CappedTag<uint32_t, 8> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  using V = hn::Vec<decltype(d)>;
  auto row = [&](int64_t i) HWY_ATTR { return hn::LoadU(d, from + i * from_stride); };
  auto lower = [&](V a, V b) HWY_ATTR { return hn::BitCast(d64, hn::InterleaveLower(d, a, b)); };
  auto upper = [&](V a, V b) HWY_ATTR { return hn::BitCast(d64, hn::InterleaveUpper(d, a, b)); };
  // Columns c and c + 4 of four rows at a time.
  auto four_rows = [&](int64_t i, V* out) HWY_ATTR {
    const V a = row(i), b = row(i + 1), c = row(i + 2), e = row(i + 3);
    const auto ab_low = lower(a, b), ab_high = upper(a, b);
    const auto ce_low = lower(c, e), ce_high = upper(c, e);
    out[0] = hn::BitCast(d, hn::InterleaveLower(d64, ab_low, ce_low));
    out[1] = hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, ce_low));
    out[2] = hn::BitCast(d, hn::InterleaveLower(d64, ab_high, ce_high));
    out[3] = hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, ce_high));
  };
  V top[4], bottom[4];
  four_rows(0, top);
  four_rows(4, bottom);
  for (int64_t c = 0; c < 4; ++c) {
    hn::StoreU(hn::ConcatLowerLower(d, bottom[c], top[c]), d, to + c * to_stride);
    hn::StoreU(hn::ConcatUpperUpper(d, bottom[c], top[c]), d, to + (c + 4) * to_stride);
  }
}

// Eight destination rows at a time, each written as one whole cache line: with a stride that is a
// power of two they share a cache set, which has eight places.
void transpose_tile(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  for (int64_t j = 0; j < kTransposeTile; j += 8)
    for (int64_t i = 0; i < kTransposeTile; i += 8)
      transpose_eight(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
}

#endif  // HWY_TARGET == HWY_SCALAR

TransposeTile tile_of_words() { return transpose_tile; }

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
namespace {
HWY_EXPORT(tile_of_words);
}  // namespace

TransposeTile transpose_tile_of_words() { return HWY_DYNAMIC_DISPATCH(tile_of_words)(); }

}  // namespace obelisk::ops
#endif  // HWY_ONCE
