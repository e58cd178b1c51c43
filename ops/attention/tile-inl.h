// Building blocks of the attention kernels. Per-target header: see ops/common/simd-inl.h.
//
// Everything is laid out with queries in lanes: a group of kGroup = 2 vectors of queries is packed
// transposed, [D][kGroup], and scores come as [keys][kGroup]. Then
// - keys and values are read where they are, one scalar at a time (a broadcast load), so their
//   strided rows need no packing;
// - running maximum and sum of the softmax are plain vectors, without a sum across lanes.
#if defined(OBELISK_OPS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OBELISK_OPS_ATTENTION_TILE_INL_H_
#undef OBELISK_OPS_ATTENTION_TILE_INL_H_
#else
#define OBELISK_OPS_ATTENTION_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "framework/tensor/context.h"
#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
using Lane = hn::Vec<Tag<T>>;

template <typename T>
HWY_INLINE int64_t vector_lanes() {
  return static_cast<int64_t>(hn::Lanes(Tag<T>()));
}
// Queries in a group.
template <typename T>
HWY_INLINE int64_t group_size() {
  return 2 * vector_lanes<T>();
}

// Keys in a block: scores of a block and a group (6 KiB in f32 with AVX2) stay in the L1 cache.
inline constexpr int64_t kKeyBlock = 96;
// Rows of a register tile: 6 x 2 accumulators hide the latency of two fma units and leave four of
// AVX2's sixteen registers for operands.
inline constexpr int kTileRows = 6;

// What a tile does with its target before adding the product.
enum class Init { Zero, Keep, Rescale };

// Rows of a are scattered: element (r, k) at a[r * stride + k]; or dense: at a[k * stride + r].
enum class Rows { Scattered, Dense };

inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kLn2 = 0.6931471805599453;

// Items worth waking a thread for, of `items` that take `work` multiply-adds together.
inline int64_t items_of_range(int64_t items, int64_t work) {
  constexpr int64_t kWorkOfRange = 1 << 17;
  return std::max<int64_t>(1, kWorkOfRange * items / std::max<int64_t>(1, work));
}

template <typename T>
struct Product {
  const T* a;
  int64_t a_stride;
  const T* b;  // [depth][b_stride], two vectors of each row are used
  int64_t b_stride;
  int64_t depth;
  T* c;  // [rows][c_stride]
  int64_t c_stride;
  const T* factor = nullptr;  // [2 vectors]; read for Init::Rescale only
};

// c[r][0..2 vectors) = (0 | c | c * factor)[r] + sum_k a(r, k) * b[k][0..2 vectors), for kRows
// rows.
template <typename T, int kRows, Rows kLayout, Init kInit>
HWY_NOINLINE void multiply_tile(const Product<T>& product) {
  const Tag<T> d;
  const int64_t lanes = vector_lanes<T>();
  Lane<T> sum0[kRows], sum1[kRows];
  const T* row[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    T* c = product.c + r * product.c_stride;
    row[r] = product.a + (kLayout == Rows::Scattered ? r * product.a_stride : r);
    if constexpr (kInit == Init::Zero) {
      sum0[r] = hn::Zero(d);
      sum1[r] = hn::Zero(d);
    } else if constexpr (kInit == Init::Keep) {
      sum0[r] = hn::LoadU(d, c);
      sum1[r] = hn::LoadU(d, c + lanes);
    } else {
      sum0[r] = hn::Mul(hn::LoadU(d, c), hn::LoadU(d, product.factor));
      sum1[r] = hn::Mul(hn::LoadU(d, c + lanes), hn::LoadU(d, product.factor + lanes));
    }
  }
  const T* b = product.b;
  const T* dense = product.a;
  for (int64_t k = 0; k < product.depth; ++k) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto a = hn::Set(d, kLayout == Rows::Scattered ? row[r][k] : dense[r]);
      sum0[r] = hn::MulAdd(a, b0, sum0[r]);
      sum1[r] = hn::MulAdd(a, b1, sum1[r]);
    }
    b += product.b_stride;
    dense += product.a_stride;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    T* c = product.c + r * product.c_stride;
    hn::StoreU(sum0[r], d, c);
    hn::StoreU(sum1[r], d, c + lanes);
  }
}

// The same for any number of rows, cut evenly into tiles, since a tile of one or two rows runs at
// the fma units' latency.
template <typename T, Rows kLayout, Init kInit>
HWY_INLINE void multiply_rows(Product<T> product, int64_t rows) {
  int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  while (rows > 0) {
    const int64_t tile = (rows + tiles - 1) / tiles;
    switch (tile) {
      case 1:
        multiply_tile<T, 1, kLayout, kInit>(product);
        break;
      case 2:
        multiply_tile<T, 2, kLayout, kInit>(product);
        break;
      case 3:
        multiply_tile<T, 3, kLayout, kInit>(product);
        break;
      case 4:
        multiply_tile<T, 4, kLayout, kInit>(product);
        break;
      case 5:
        multiply_tile<T, 5, kLayout, kInit>(product);
        break;
      default:
        multiply_tile<T, kTileRows, kLayout, kInit>(product);
        break;
    }
    product.a += tile * (kLayout == Rows::Scattered ? product.a_stride : 1);
    product.c += tile * product.c_stride;
    rows -= tile;
    --tiles;
  }
}

#if HWY_TARGET != HWY_SCALAR
// Transposes one block of 128-bit vectors: 4 x 4 in f32, 2 x 2 in f64.
template <typename From, typename To>
HWY_INLINE void transpose_block(const From* src, int64_t src_stride, Compute<From> factor, To* dst,
                                int64_t dst_stride) {
  constexpr int64_t kBlock = 16 / sizeof(factor);
  const hn::FixedTag<Compute<From>, kBlock> d;
  const auto scale = hn::Set(d, factor);
  const auto r0 = hn::Mul(load(d, src), scale);
  const auto r1 = hn::Mul(load(d, src + src_stride), scale);
  if constexpr (kBlock == 4) {
    const auto r2 = hn::Mul(load(d, src + 2 * src_stride), scale);
    const auto r3 = hn::Mul(load(d, src + 3 * src_stride), scale);
    const auto even_lower = hn::InterleaveLower(d, r0, r2);
    const auto odd_lower = hn::InterleaveLower(d, r1, r3);
    const auto even_upper = hn::InterleaveUpper(d, r0, r2);
    const auto odd_upper = hn::InterleaveUpper(d, r1, r3);
    store(hn::InterleaveLower(d, even_lower, odd_lower), d, dst);
    store(hn::InterleaveUpper(d, even_lower, odd_lower), d, dst + dst_stride);
    store(hn::InterleaveLower(d, even_upper, odd_upper), d, dst + 2 * dst_stride);
    store(hn::InterleaveUpper(d, even_upper, odd_upper), d, dst + 3 * dst_stride);
  } else {
    store(hn::InterleaveLower(d, r0, r1), d, dst);
    store(hn::InterleaveUpper(d, r0, r1), d, dst + dst_stride);
  }
}
#endif

// dst[c * dst_stride + r] = factor * src[r * src_stride + c]. Here and below one side may be bf16
// and the other f32.
template <typename From, typename To>
HWY_INLINE void transpose(const From* src, int64_t src_stride, int64_t rows, int64_t columns,
                          Compute<From> factor, To* dst, int64_t dst_stride) {
  int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr int64_t kBlock = 16 / sizeof(factor);
  whole_rows = rows / kBlock * kBlock;
  whole_columns = columns / kBlock * kBlock;
  for (int64_t r = 0; r < whole_rows; r += kBlock)
    for (int64_t c = 0; c < whole_columns; c += kBlock)
      transpose_block(src + r * src_stride + c, src_stride, factor, dst + c * dst_stride + r,
                      dst_stride);
#endif
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c)
      dst[c * dst_stride + r] = narrow<To>(factor * widen(src[r * src_stride + c]));
}

// dst[r * dst_stride + i] = factor * src[r * src_stride + i]. Operands are packed this way first,
// because strides of a projection are a few pages long and would cost a TLB entry a row and most of
// the caches' associativity at every use.
template <typename From, typename To>
HWY_INLINE void copy_rows(const From* src, int64_t src_stride, int64_t rows, int64_t width,
                          Compute<From> factor, To* dst, int64_t dst_stride) {
  const Tag<Compute<From>> d;
  const int64_t lanes = vector_lanes<Compute<From>>();
  const auto scale = hn::Set(d, factor);
  for (int64_t r = 0; r < rows; ++r) {
    const From* const from = src + r * src_stride;
    To* const to = dst + r * dst_stride;
    int64_t i = 0;
    for (; i + lanes <= width; i += lanes) store(hn::Mul(load(d, from + i), scale), d, to + i);
    for (; i < width; ++i) to[i] = narrow<To>(factor * widen(from[i]));
  }
}

// Packs `count` queries into a group: dst[d][lane] = factor * src[lane][d], other lanes 0.
template <typename From, typename T = Compute<From>>
HWY_INLINE void pack_group(const From* src, int64_t stride, int64_t count, int64_t depth, T factor,
                           T* dst) {
  const int64_t group = group_size<T>();
  if (count < group) std::fill_n(dst, depth * group, T{0});
  transpose(src, stride, count, depth, factor, dst, group);
}

}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // OBELISK_OPS_ATTENTION_TILE_INL_H_
