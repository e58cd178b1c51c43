// The tiling. A thread owns a tile of C. For each block of columns (kGemmColumns) and each block of
// k (kGemmDepth) it packs that part of op(B) once, so that it stays in the second-level cache, and
// then walks down the rows of A, kGemmRows at a time: those few rows stay in the first-level cache
// while they meet every column of the packed block. A is read in place; when it is transposed, it
// is packed, kGemmPackedRows rows at a time, so that whole cache lines are used.
//
// The register tile is kGemmRows x 2 vectors: 12 sums cover the latency (4) times the rate (2) of
// the multiply-adds, and with two vectors of B and one broadcast of A they fill the 16 registers of
// AVX2. The sums are named variables, passed by value: GCC keeps them in registers only so.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/gemm_cpu.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

#include "ops/common/simd-inl.h"
#include "ops/matmul/gemm_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// One row of the register tile.
template <class V>
struct RowSums {
  V v0, v1;
};

template <int kVectors, class D, class V = hn::Vec<D>>
HWY_INLINE void multiply_add(D d, hn::TFromD<D> a, V b0, V b1, RowSums<V>& row) {
  const V broadcast = hn::Set(d, a);
  row.v0 = hn::MulAdd(broadcast, b0, row.v0);
  if constexpr (kVectors == 2) row.v1 = hn::MulAdd(broadcast, b1, row.v1);
}

// What happens to a finished tile of sums.
template <typename T>
struct Store {
  T* c;
  int64_t stride;
  int64_t rows, columns;  // of C inside the tile
  const T* bias;          // null: none; else of the tile's columns
  bool add;               // to what C holds
};

// One vector of sums into C, whole or in part.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void store_sums(D d, V sum, int64_t r, int64_t column, const Store<hn::TFromD<D>>& to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* const p = to.c + r * to.stride + column;
  const auto* const extra = to.add ? p : to.bias != nullptr ? to.bias + column : nullptr;
  const int64_t left = to.columns - column;
  if (left >= lanes) {
    if (extra != nullptr) sum = hn::Add(hn::LoadU(d, extra), sum);
    hn::StoreU(sum, d, p);
  } else {
    const auto n = static_cast<size_t>(left);
    if (extra != nullptr) sum = hn::Add(load_partial(d, extra, n), sum);
    store_partial(sum, d, p, n);
  }
}

template <int kVectors, class D, class V = hn::Vec<D>>
HWY_INLINE void store_row(D d, RowSums<V> row, int64_t r, const Store<hn::TFromD<D>>& to) {
  store_sums(d, row.v0, r, 0, to);
  if constexpr (kVectors == 2) store_sums(d, row.v1, r, static_cast<int64_t>(hn::Lanes(d)), to);
}

// kGemmRows x kVectors vectors of C over one block of k. A is read at a + r * row_stride + k when
// kPacked is false (rows at and beyond `to.rows` repeat the last one), else at a[k * kGemmRows +
// r]. B is packed: kVectors vectors a k.
template <int kVectors, bool kPacked, class D>
HWY_INLINE void micro_kernel(D d, int64_t depth, const hn::TFromD<D>* a, int64_t row_stride,
                             const hn::TFromD<D>* b, const Store<hn::TFromD<D>>& to) {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V zero = hn::Zero(d);
  RowSums<V> r0{zero, zero}, r1 = r0, r2 = r0, r3 = r0, r4 = r0, r5 = r0;
  const int64_t last = to.rows - 1;
  auto row = [&](int64_t r) { return kPacked ? a + r : a + std::min(r, last) * row_stride; };
  const T *a0 = row(0), *a1 = row(1), *a2 = row(2), *a3 = row(3), *a4 = row(4), *a5 = row(5);
  constexpr int64_t kStep = kPacked ? kGemmRows : 1;
  constexpr int64_t kWidth = kVectors * hn::MaxLanes(d);
  for (int64_t r = 0; r < to.rows; ++r) hwy::Prefetch(to.c + r * to.stride);
  for (int64_t k = 0; k < depth; ++k, b += kWidth) {
    const V b0 = hn::LoadU(d, b);
    const V b1 = kVectors == 2 ? hn::LoadU(d, b + lanes) : zero;
    multiply_add<kVectors>(d, a0[k * kStep], b0, b1, r0);
    multiply_add<kVectors>(d, a1[k * kStep], b0, b1, r1);
    multiply_add<kVectors>(d, a2[k * kStep], b0, b1, r2);
    multiply_add<kVectors>(d, a3[k * kStep], b0, b1, r3);
    multiply_add<kVectors>(d, a4[k * kStep], b0, b1, r4);
    multiply_add<kVectors>(d, a5[k * kStep], b0, b1, r5);
  }
  store_row<kVectors>(d, r0, 0, to);
  if (to.rows > 1) store_row<kVectors>(d, r1, 1, to);
  if (to.rows > 2) store_row<kVectors>(d, r2, 2, to);
  if (to.rows > 3) store_row<kVectors>(d, r3, 3, to);
  if (to.rows > 4) store_row<kVectors>(d, r4, 4, to);
  if (to.rows > 5) store_row<kVectors>(d, r5, 5, to);
}

#if HWY_TARGET == HWY_SCALAR
template <typename T>
constexpr int64_t kSide = 1;
template <typename T>
HWY_INLINE void transpose_block(const T* from, int64_t, T* to, int64_t) {
  *to = *from;
}
#else
template <typename T>
constexpr int64_t kSide = 16 / sizeof(T);
// A square block of as many elements a side as 16 bytes hold, transposed.
HWY_INLINE void transpose_block(const float* from, int64_t from_stride, float* to,
                                int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto low02 = hn::InterleaveLower(d, r0, r2), high02 = hn::InterleaveUpper(d, r0, r2);
  const auto low13 = hn::InterleaveLower(d, r1, r3), high13 = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, low02, low13), d, to);
  hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, high02, high13), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, to + 3 * to_stride);
}
HWY_INLINE void transpose_block(const double* from, int64_t from_stride, double* to,
                                int64_t to_stride) {
  const hn::FixedTag<double, 2> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + to_stride);
}
#endif

// to[k * width + j] = from[j * stride + k], zeros where j >= columns.
template <typename T>
void pack_transposed(const T* from, int64_t stride, int64_t depth, int64_t columns, int64_t width,
                     T* to) {
  int64_t j = 0;
  for (; j + kSide<T> <= columns; j += kSide<T>) {
    int64_t k = 0;
    for (; k + kSide<T> <= depth; k += kSide<T>)
      transpose_block(from + j * stride + k, stride, to + k * width + j, width);
    for (; k < depth; ++k)
      for (int64_t i = j; i < j + kSide<T>; ++i) to[k * width + i] = from[i * stride + k];
  }
  for (; j < width; ++j)
    for (int64_t k = 0; k < depth; ++k)
      to[k * width + j] = j < columns ? from[j * stride + k] : T{0};
}

// Panels of kWidth columns, one after the other: panel j holds to[k * kWidth + i] = from[k * stride
// + j * kWidth + i], zeros beyond `columns`. Rows are read through, so that whole cache lines are
// used; a constant width makes each copy a few moves.
template <int64_t kWidth, typename T>
void pack_straight(const T* from, int64_t stride, int64_t depth, int64_t columns, T* to) {
  const int64_t whole = columns / kWidth, rest = columns % kWidth;
  for (int64_t k = 0; k < depth; ++k, from += stride, to += kWidth) {
    T* panel = to;
    const T* piece = from;
    for (int64_t j = 0; j < whole; ++j, panel += kWidth * depth, piece += kWidth)
      std::memcpy(panel, piece, kWidth * sizeof(T));
    if (rest == 0) continue;
    for (int64_t i = 0; i < kWidth; ++i) panel[i] = i < rest ? piece[i] : T{0};
  }
}

// One panel of op(B), kVectors vectors wide, at one block of k.
template <int kVectors, class D, typename T = hn::TFromD<D>>
void pack_panel(D d, const GemmOperand<T>& b, int64_t k, int64_t depth, int64_t n, int64_t columns,
                T* packed) {
  constexpr int64_t kWidth = kVectors * hn::MaxLanes(d);
  if (b.transposed)
    pack_transposed(b.data + n * b.stride + k, b.stride, depth, columns, kWidth, packed);
  else
    pack_straight<kWidth>(b.data + k * b.stride + n, b.stride, depth, columns, packed);
}

// One packed block of op(B): columns [n_begin, n_end) at [k_begin, k_begin + depth).
template <typename T>
struct PackedBlock {
  const T* data;
  int64_t n_begin, n_end, k_begin, depth;
};

// The next rows of A, towards the first-level cache: elements [begin, end) of a block of k. The
// processor's own prefetching does not follow runs as short as that.
template <typename T>
HWY_INLINE void prefetch_rows(const T* a, int64_t stride, int64_t begin, int64_t end) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t r = 0; r < kGemmRows; ++r)
    for (int64_t k = begin; k < end; k += kLine) hwy::Prefetch(a + r * stride + k);
}

// Rows [m, m + rows) of C against one block. `a` as for micro_kernel; `next` are the rows of A to
// prefetch, or null.
template <bool kPacked, typename T>
void multiply_rows(const GemmProblem<T>& p, const PackedBlock<T>& block, int64_t m, int64_t rows,
                   const T* a, const T* next) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool first = block.k_begin == 0;
  const int64_t share = block.depth * 2 * lanes / (block.n_end - block.n_begin);
  int64_t fetched = 0;
  for (int64_t n = block.n_begin; n < block.n_end; n += 2 * lanes) {
    const T* const b = block.data + (n - block.n_begin) * block.depth;
    const int64_t columns = std::min(2 * lanes, block.n_end - n);
    const Store<T> to{p.c + m * p.c_stride + n,
                      p.c_stride,
                      rows,
                      columns,
                      first && p.bias != nullptr ? p.bias + n : nullptr,
                      p.accumulate || !first};
    if (next != nullptr) {
      const int64_t end = std::min(block.depth, fetched + share);
      prefetch_rows(next, p.a.stride, fetched, end);
      fetched = end;
    }
    if (columns > lanes)
      micro_kernel<2, kPacked>(d, block.depth, a, p.a.stride, b, to);
    else
      micro_kernel<1, kPacked>(d, block.depth, a, p.a.stride, b, to);
  }
}

// Every row of the tile against one block.
template <typename T>
void multiply_block(const GemmProblem<T>& p, const GemmTile& tile, const PackedBlock<T>& block,
                    T* packed_a) {
  const T* const none = nullptr;
  for (int64_t m = tile.m_begin; m < tile.m_end; m += kGemmRows) {
    const int64_t rows = std::min(kGemmRows, tile.m_end - m);
    if (p.a.transposed) {
      const int64_t in_group = (m - tile.m_begin) % kGemmPackedRows;
      if (in_group == 0)
        pack_straight<kGemmRows>(p.a.data + block.k_begin * p.a.stride + m, p.a.stride, block.depth,
                                 std::min(kGemmPackedRows, tile.m_end - m), packed_a);
      multiply_rows<true>(p, block, m, rows, packed_a + in_group * block.depth, none);
    } else {
      const T* const a = p.a.data + m * p.a.stride + block.k_begin;
      const bool whole_next = m + 2 * kGemmRows <= tile.m_end;
      multiply_rows<false>(p, block, m, rows, a, whole_next ? a + kGemmRows * p.a.stride : none);
    }
  }
}

template <typename T>
void multiply_tile(const GemmProblem<T>& p, const GemmTile& tile, T* scratch) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* const packed_b = scratch;
  T* const packed_a = scratch + kGemmDepth * kGemmColumns<T>;
  for (int64_t n0 = tile.n_begin; n0 < tile.n_end; n0 += kGemmColumns<T>) {
    const int64_t n1 = std::min(tile.n_end, n0 + kGemmColumns<T>);
    for (int64_t k0 = 0; k0 < p.k; k0 += kGemmDepth) {
      const PackedBlock<T> block{packed_b, n0, n1, k0, std::min(kGemmDepth, p.k - k0)};
      for (int64_t n = n0; n < n1; n += 2 * lanes) {
        const int64_t columns = std::min(2 * lanes, n1 - n);
        T* const panel = packed_b + (n - n0) * block.depth;
        if (columns > lanes)
          pack_panel<2>(d, p.b, k0, block.depth, n, columns, panel);
        else
          pack_panel<1>(d, p.b, k0, block.depth, n, columns, panel);
      }
      multiply_block(p, tile, block, packed_a);
    }
  }
}

void tile_f32(const GemmProblem<float>& problem, const GemmTile& tile, float* scratch) {
  multiply_tile(problem, tile, scratch);
}
void tile_f64(const GemmProblem<double>& problem, const GemmTile& tile, double* scratch) {
  multiply_tile(problem, tile, scratch);
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {

HWY_EXPORT(tile_f32);
HWY_EXPORT(tile_f64);

void gemm_tile(const GemmProblem<float>& problem, const GemmTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(tile_f32)(problem, tile, scratch);
}
void gemm_tile(const GemmProblem<double>& problem, const GemmTile& tile, double* scratch) {
  HWY_DYNAMIC_DISPATCH(tile_f64)(problem, tile, scratch);
}

}  // namespace obelisk::ops
#endif
