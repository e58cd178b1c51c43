// The tiling. A thread owns a tile of C. For each block of columns (kGemmColumns) and each block of
// k (kGemmDepth) it packs that part of op(B) once, so that it stays in the second-level cache, and
// then walks down the rows of A, kGemmRows at a time: those few rows stay in the first-level cache
// while they meet every column of the packed block. A is read in place; when it is transposed, it
// is packed, kGemmPackedRows rows at a time, so that whole cache lines are used. Packing makes f32
// of bf16, and rows of a bf16 A are copied as f32 before they meet the block.
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

// What happens to a finished tile of sums. `Sum` is the type they are made in, T that of the bias.
template <typename T, typename C, typename Sum = Compute<T>>
struct Store {
  static constexpr bool kNarrows = !std::is_same_v<C, Sum>;
  C* c;
  int64_t stride;
  int64_t rows, columns;  // of C inside the tile
  const T* bias;          // null: none; else of the tile's columns
  bool add;               // to what C holds
  // Where C is narrower: sums of earlier blocks of k, rows kGemmColumns apart, or null.
  Sum* sums = nullptr;
  bool add_sums = false;   // to what `sums` holds
  bool keep_sums = false;  // there; C waits for the last block
};

// Lanes of one vector from n elements, the others zero.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load_up_to(D d, const T* p, int64_t n) {
  if (n >= static_cast<int64_t>(hn::Lanes(d))) return load(d, p);
  return load(d, p, static_cast<size_t>(n));
}

// One vector of sums into C; kWhole: all of it lies inside.
template <bool kWhole, class D, class To, class V = hn::Vec<D>>
HWY_INLINE void store_sums(D d, V sum, int64_t r, int64_t column, const To& to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t left = kWhole ? lanes : to.columns - column;
  auto* const p = to.c + r * to.stride + column;
  if (to.add)
    sum = hn::Add(load_up_to(d, p, left), sum);
  else if (to.bias != nullptr)
    sum = hn::Add(load_up_to(d, to.bias + column, left), sum);
  if constexpr (To::kNarrows) {
    auto* const kept = to.sums + r * kGemmColumns<hn::TFromD<D>> + column;
    if (to.add_sums) sum = hn::Add(load(d, kept), sum);
    if (to.keep_sums) return store(sum, d, kept);
  }
  if (left >= lanes)
    store(sum, d, p);
  else
    store(sum, d, p, static_cast<size_t>(left));
}

template <int kVectors, bool kWhole, class D, class To, class V = hn::Vec<D>>
HWY_INLINE void store_row(D d, RowSums<V> row, int64_t r, const To& to) {
  if (!kWhole && r >= to.rows) return;
  store_sums<kWhole>(d, row.v0, r, 0, to);
  if constexpr (kVectors == 2)
    store_sums<kWhole>(d, row.v1, r, static_cast<int64_t>(hn::Lanes(d)), to);
}

template <int kVectors, bool kWhole, class D, class To, class V = hn::Vec<D>>
HWY_INLINE void store_tile(D d, RowSums<V> r0, RowSums<V> r1, RowSums<V> r2, RowSums<V> r3,
                           RowSums<V> r4, RowSums<V> r5, const To& to) {
  store_row<kVectors, kWhole>(d, r0, 0, to);
  store_row<kVectors, kWhole>(d, r1, 1, to);
  store_row<kVectors, kWhole>(d, r2, 2, to);
  store_row<kVectors, kWhole>(d, r3, 3, to);
  store_row<kVectors, kWhole>(d, r4, 4, to);
  store_row<kVectors, kWhole>(d, r5, 5, to);
}

// kGemmRows x kVectors vectors of C over one block of k. A is read at a + r * row_stride + k when
// kPacked is false (rows at and beyond `to.rows` repeat the last one), else at a[k * kGemmRows +
// r]. B is packed: kVectors vectors a k.
template <int kVectors, bool kPacked, class D, class To>
HWY_INLINE void micro_kernel(D d, int64_t depth, const hn::TFromD<D>* a, int64_t row_stride,
                             const hn::TFromD<D>* b, const To& to) {
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
#pragma GCC unroll 4
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
  if (to.rows == kGemmRows && to.columns >= kVectors * static_cast<int64_t>(lanes))
    store_tile<kVectors, true>(d, r0, r1, r2, r3, r4, r5, to);
  else
    store_tile<kVectors, false>(d, r0, r1, r2, r3, r4, r5, to);
}

#if HWY_TARGET == HWY_SCALAR
template <typename Sum>
constexpr int64_t kSide = 1;
template <typename T>
HWY_INLINE void transpose_block(const T* from, int64_t, Compute<T>* to, int64_t) {
  *to = widen(*from);
}
#else
template <typename Sum>
constexpr int64_t kSide = 16 / sizeof(Sum);
// A square block of as many sums a side as 16 bytes hold, transposed and widened.
template <typename T>
HWY_INLINE void transpose_block(const T* from, int64_t from_stride, float* to, int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = load(d, from), r1 = load(d, from + from_stride);
  const auto r2 = load(d, from + 2 * from_stride), r3 = load(d, from + 3 * from_stride);
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
template <typename T, typename Sum = Compute<T>>
void pack_transposed(const T* from, int64_t stride, int64_t depth, int64_t columns, int64_t width,
                     Sum* to) {
  int64_t j = 0;
  for (; j + kSide<Sum> <= columns; j += kSide<Sum>) {
    int64_t k = 0;
    for (; k + kSide<Sum> <= depth; k += kSide<Sum>)
      transpose_block(from + j * stride + k, stride, to + k * width + j, width);
    for (; k < depth; ++k)
      for (int64_t i = j; i < j + kSide<Sum>; ++i) to[k * width + i] = widen(from[i * stride + k]);
  }
  for (; j < width; ++j)
    for (int64_t k = 0; k < depth; ++k)
      to[k * width + j] = j < columns ? widen(from[j * stride + k]) : Sum{0};
}

template <typename T>
HWY_INLINE void copy_row(const T* from, int64_t n, Compute<T>* to) {
  map_unary(from, to, n, [](auto v) HWY_ATTR { return v; });
}

// kWidth elements; a constant width makes the copy a few moves.
template <int64_t kWidth, typename T>
HWY_INLINE void copy_piece(const T* from, Compute<T>* to) {
  if constexpr (std::is_same_v<T, Compute<T>>)
    std::memcpy(to, from, kWidth * sizeof(T));
  else
    copy_row(from, kWidth, to);
}

// Panels of kWidth columns, one after the other: panel j holds to[k * kWidth + i] = from[k * stride
// + j * kWidth + i], zeros beyond `columns`. Rows are read through, so that whole cache lines are
// used.
template <int64_t kWidth, typename T, typename Sum = Compute<T>>
void pack_straight(const T* from, int64_t stride, int64_t depth, int64_t columns, Sum* to) {
  const int64_t whole = columns / kWidth, rest = columns % kWidth;
  for (int64_t k = 0; k < depth; ++k, from += stride, to += kWidth) {
    Sum* panel = to;
    const T* piece = from;
    for (int64_t j = 0; j < whole; ++j, panel += kWidth * depth, piece += kWidth)
      copy_piece<kWidth>(piece, panel);
    if (rest == 0) continue;
    for (int64_t i = 0; i < kWidth; ++i) panel[i] = i < rest ? widen(piece[i]) : Sum{0};
  }
}

// The same with panels of kGemmRows, for up to kGemmPackedRows columns: a row is widened at once,
// since no vector fits a panel's.
template <typename T, typename Sum = Compute<T>>
void pack_a(const T* from, int64_t stride, int64_t depth, int64_t columns, Sum* to) {
  if constexpr (std::is_same_v<T, Sum>) {
    pack_straight<kGemmRows>(from, stride, depth, columns, to);
  } else {
    Sum row[kGemmPackedRows];
    for (int64_t k = 0; k < depth; ++k) {
      copy_row(from + k * stride, columns, row);
      for (int64_t i = 0; i < columns; i += kGemmRows) {
        Sum* const panel = to + i * depth + k * kGemmRows;
        if (i + kGemmRows <= columns)
          copy_piece<kGemmRows>(row + i, panel);
        else
          std::fill(std::copy(row + i, row + columns, panel), panel + kGemmRows, Sum{0});
      }
    }
  }
}

// One panel of op(B), kVectors vectors wide, at one block of k.
template <int kVectors, class D, typename T>
void pack_panel(D d, const GemmOperand<T>& b, int64_t k, int64_t depth, int64_t n, int64_t columns,
                Compute<T>* packed) {
  constexpr int64_t kWidth = kVectors * hn::MaxLanes(d);
  if (b.transposed)
    pack_transposed(b.data + n * b.stride + k, b.stride, depth, columns, kWidth, packed);
  else
    pack_straight<kWidth>(b.data + k * b.stride + n, b.stride, depth, columns, packed);
}

// One packed block of op(B): columns [n_begin, n_end) at [k_begin, k_begin + depth).
template <typename Sum>
struct PackedBlock {
  const Sum* data;
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

// Rows of A as the micro kernel reads them, and those to fetch for the next call, or null.
template <typename T>
struct Rows {
  const Compute<T>* a;
  int64_t stride;
  const T* next;
};

// Columns [n, n + columns) of rows [m, m + rows) of C. `sums`, if not null, are those of row m and
// the block's first column.
template <typename T, typename C>
Store<T, C> store_of(const GemmProblem<T, C>& p, const PackedBlock<Compute<T>>& block, int64_t m,
                     int64_t rows, int64_t n, int64_t columns, Compute<T>* sums) {
  const bool first = block.k_begin == 0;
  Store<T, C> to{p.c + m * p.c_stride + n,
                 p.c_stride,
                 rows,
                 columns,
                 first && p.bias != nullptr ? p.bias + n : nullptr,
                 p.accumulate || !first};
  if (sums == nullptr) return to;
  to.add = p.accumulate && first;
  to.sums = sums + (n - block.n_begin);
  to.add_sums = !first;
  to.keep_sums = block.k_begin + block.depth < p.k;
  return to;
}

// Rows [m, m + rows) of C against one block.
template <bool kPacked, typename T, typename C>
void multiply_rows(const GemmProblem<T, C>& p, const PackedBlock<Compute<T>>& block, int64_t m,
                   int64_t rows, const Rows<T>& from, Compute<T>* sums) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t share = block.depth * 2 * lanes / (block.n_end - block.n_begin);
  int64_t fetched = 0;
  for (int64_t n = block.n_begin; n < block.n_end; n += 2 * lanes) {
    const Compute<T>* const b = block.data + (n - block.n_begin) * block.depth;
    const int64_t columns = std::min(2 * lanes, block.n_end - n);
    const Store<T, C> to = store_of(p, block, m, rows, n, columns, sums);
    if (from.next != nullptr) {
      const int64_t end = std::min(block.depth, fetched + share);
      prefetch_rows(from.next, p.a.stride, fetched, end);
      fetched = end;
    }
    if (columns > lanes)
      micro_kernel<2, kPacked>(d, block.depth, from.a, from.stride, b, to);
    else
      micro_kernel<1, kPacked>(d, block.depth, from.a, from.stride, b, to);
  }
}

// Every row of the tile against one block. `sums` as for store_of, of the tile's first row.
template <typename T, typename C>
void multiply_block(const GemmProblem<T, C>& p, const GemmTile& tile,
                    const PackedBlock<Compute<T>>& block, Compute<T>* packed_a, Compute<T>* sums) {
  constexpr bool kInPlace = std::is_same_v<T, Compute<T>>;
  for (int64_t m = tile.m_begin; m < tile.m_end; m += kGemmRows) {
    const int64_t rows = std::min(kGemmRows, tile.m_end - m);
    Compute<T>* const sums_m =
        sums == nullptr ? nullptr : sums + (m - tile.m_begin) * kGemmColumns<Compute<T>>;
    if (p.a.transposed) {
      const int64_t in_group = (m - tile.m_begin) % kGemmPackedRows;
      if (in_group == 0)
        pack_a(p.a.data + block.k_begin * p.a.stride + m, p.a.stride, block.depth,
               std::min(kGemmPackedRows, tile.m_end - m), packed_a);
      multiply_rows<true>(p, block, m, rows, {packed_a + in_group * block.depth, 0, nullptr},
                          sums_m);
      continue;
    }
    const T* const a = p.a.data + m * p.a.stride + block.k_begin;
    const T* const next = m + 2 * kGemmRows <= tile.m_end ? a + kGemmRows * p.a.stride : nullptr;
    if constexpr (kInPlace) {
      multiply_rows<false>(p, block, m, rows, {a, p.a.stride, next}, sums_m);
    } else {
      for (int64_t r = 0; r < rows; ++r)
        copy_row(a + r * p.a.stride, block.depth, packed_a + r * kGemmDepth);
      multiply_rows<false>(p, block, m, rows, {packed_a, kGemmDepth, next}, sums_m);
    }
  }
}

// Columns [n0, n1) of the tile.
template <typename T, typename C>
void multiply_columns(const GemmProblem<T, C>& p, const GemmTile& tile, int64_t n0, int64_t n1,
                      Compute<T>* packed_b, Compute<T>* packed_a, Compute<T>* sums) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t k0 = 0; k0 < p.k; k0 += kGemmDepth) {
    const PackedBlock<Compute<T>> block{packed_b, n0, n1, k0, std::min(kGemmDepth, p.k - k0)};
    for (int64_t n = n0; n < n1; n += 2 * lanes) {
      const int64_t columns = std::min(2 * lanes, n1 - n);
      Compute<T>* const panel = packed_b + (n - n0) * block.depth;
      if (columns > lanes)
        pack_panel<2>(d, p.b, k0, block.depth, n, columns, panel);
      else
        pack_panel<1>(d, p.b, k0, block.depth, n, columns, panel);
    }
    multiply_block(p, tile, block, packed_a, sums);
  }
}

template <typename T, typename C>
void multiply_tile(const GemmProblem<T, C>& p, const GemmTile& tile, Compute<T>* scratch) {
  constexpr int64_t kMostColumns = kGemmColumns<Compute<T>>;
  Compute<T>* const packed_b = scratch;
  Compute<T>* const packed_a = packed_b + kGemmDepth * kMostColumns;
  Compute<T>* const sums = keeps_sums(p) ? packed_a + kGemmDepth * kGemmPackedRows : nullptr;
  const int64_t height = sums != nullptr ? kGemmSumRows : tile.m_end - tile.m_begin;
  // Blocks of columns alike: a narrow last one would not pay for what it reads of A.
  const int64_t width = tile.n_end - tile.n_begin;
  const int64_t blocks = (width + kMostColumns - 1) / kMostColumns;
  const int64_t columns = (width + blocks * kGemmCut - 1) / (blocks * kGemmCut) * kGemmCut;
  for (int64_t n0 = tile.n_begin; n0 < tile.n_end; n0 += columns)
    for (int64_t m0 = tile.m_begin; m0 < tile.m_end; m0 += height) {
      const GemmTile part{m0, std::min(m0 + height, tile.m_end), tile.n_begin, tile.n_end};
      multiply_columns(p, part, n0, std::min(tile.n_end, n0 + columns), packed_b, packed_a, sums);
    }
}

void tile_f32(const GemmProblem<float>& problem, const GemmTile& tile, float* scratch) {
  multiply_tile(problem, tile, scratch);
}
void tile_f64(const GemmProblem<double>& problem, const GemmTile& tile, double* scratch) {
  multiply_tile(problem, tile, scratch);
}
void tile_bf16(const GemmProblem<BFloat16>& problem, const GemmTile& tile, float* scratch) {
  multiply_tile(problem, tile, scratch);
}
void tile_bf16_f32(const GemmProblem<BFloat16, float>& problem, const GemmTile& tile,
                   float* scratch) {
  multiply_tile(problem, tile, scratch);
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {

HWY_EXPORT(tile_f32);
HWY_EXPORT(tile_f64);
HWY_EXPORT(tile_bf16);
HWY_EXPORT(tile_bf16_f32);

void gemm_tile(const GemmProblem<float>& problem, const GemmTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(tile_f32)(problem, tile, scratch);
}
void gemm_tile(const GemmProblem<double>& problem, const GemmTile& tile, double* scratch) {
  HWY_DYNAMIC_DISPATCH(tile_f64)(problem, tile, scratch);
}
void gemm_tile(const GemmProblem<BFloat16>& problem, const GemmTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(tile_bf16)(problem, tile, scratch);
}
void gemm_tile(const GemmProblem<BFloat16, float>& problem, const GemmTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(tile_bf16_f32)(problem, tile, scratch);
}

}  // namespace obelisk::ops
#endif
