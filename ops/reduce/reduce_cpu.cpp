// Vector kernels of sum, max and argmax.
//
// Neighbouring dims of the same kind are merged, and the reduced groups are taken from the
// innermost out, each by one step [outer, length, inner] -> [outer, inner]. A step cuts its work
// into blocks whose sizes are constants, keeps one partial result a block, and joins them as a
// binary tree: the same bits for any number of threads, and an error that grows with the tree's
// depth.
#include <algorithm>
#include <limits>

#include "ops/elementwise/strided.h"
#include "ops/reduce/reduce_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway's headers stand after foreach_target.h.
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

#ifndef OBELISK_OPS_REDUCE_TABLES_
#define OBELISK_OPS_REDUCE_TABLES_
namespace obelisk::ops {
namespace {

template <typename T, typename Sum = Compute<T>>
struct ReduceRanges {
  // The reduction of n > 0 elements that lie side by side; exact in double for max.
  double (*row)(const T* x, int64_t n);
  // y[c] = reduction over r < rows of x[r * pitch + c], rows > 0.
  void (*columns)(const T* x, int64_t pitch, int64_t rows, int64_t columns, Sum* y);
  // y[c] = y[c] joined with x[c].
  void (*join)(const Sum* x, Sum* y, int64_t n);
  // y[c] /= divisor.
  void (*divide)(Sum* y, int64_t n, double divisor);
  // Index of the first largest element; the first NaN, if any.
  int64_t (*argmax)(const T* x, int64_t n);
};
struct ReduceTable {
  ReduceRanges<float> f32;
  ReduceRanges<double> f64;
  ReduceRanges<BFloat16> bf16;

  template <typename T>
  const ReduceRanges<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      return bf16;
    } else {
      return f64;
    }
  }
};

}  // namespace
}  // namespace obelisk::ops
#endif  // OBELISK_OPS_REDUCE_TABLES_

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

template <Reduction kOp, class V>
HWY_INLINE V join(V a, V b) {
  if constexpr (kOp == Reduction::Sum) {
    return hn::Add(a, b);
  } else {  // a stays where it is a NaN or not smaller; a NaN in b wins otherwise
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Ge(a, b)), a, b);
  }
}

template <Reduction kOp, class V>
HWY_INLINE V join_eight(V a, V b, V c, V e, V f, V g, V h, V i) {
  return join<kOp>(join<kOp>(join<kOp>(a, b), join<kOp>(c, e)),
                   join<kOp>(join<kOp>(f, g), join<kOp>(h, i)));
}

// Lanes joined one after another: max keeps NaN, which Highway's own does not.
template <Reduction kOp, class D, class V>
HWY_INLINE double join_lanes(D d, V v) {
  using T = hn::TFromD<D>;
  if constexpr (kOp == Reduction::Sum)
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v)));
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lanes);
  T result = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i)
    if (!(result != result) && !(result >= lanes[i])) result = lanes[i];
  return static_cast<double>(result);
}

// Four accumulators hide the latency of an addition; a piece is short enough that a lane adds about
// thirty numbers, and pieces are added in double.
constexpr int64_t kPieceVectors = 128;

template <Reduction kOp, typename T>
double reduce_piece(const T* x, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V start = kOp == Reduction::Sum ? hn::Zero(d) : hn::Neg(hn::Inf(d));
  V a = start, b = start, c = start, e = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = join<kOp>(a, load(d, x + i));
    b = join<kOp>(b, load(d, x + i + lanes));
    c = join<kOp>(c, load(d, x + i + 2 * lanes));
    e = join<kOp>(e, load(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = join<kOp>(a, load(d, x + i));
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    const V tail = load(d, x + i, rest);
    b = join<kOp>(b,
                  kOp == Reduction::Sum ? tail : hn::IfThenElse(hn::FirstN(d, rest), tail, start));
  }
  return join_lanes<kOp>(d, join<kOp>(join<kOp>(a, b), join<kOp>(c, e)));
}

template <Reduction kOp, typename T>
double reduce_row(const T* x, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  const int64_t piece = kPieceVectors * static_cast<int64_t>(hn::Lanes(d));
  double result = reduce_piece<kOp>(x, std::min(piece, n));
  for (int64_t i = piece; i < n; i += piece) {
    const double next = reduce_piece<kOp>(x + i, std::min(piece, n - i));
    if (kOp == Reduction::Sum) {
      result += next;
    } else if (!(result != result) && !(result >= next)) {
      result = next;
    }
  }
  return result;
}

template <Reduction kOp, typename T>
void join_range(const T* x, Compute<T>* y, int64_t n) {
  using V = hn::Vec<hn::ScalableTag<Compute<T>>>;
  map_binary(y, x, y, n, [](V a, V b) HWY_ATTR { return join<kOp>(a, b); });
}

// Eight rows at a time, as a tree, joined to what y holds.
template <Reduction kOp, bool kFirst, typename T>
void join_eight_rows(const T* x, int64_t pitch, int64_t n, Compute<T>* y) {
  const hn::ScalableTag<Compute<T>> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const T* p = x + i;
    const auto sum =
        join_eight<kOp>(load(d, p), load(d, p + pitch), load(d, p + 2 * pitch),
                        load(d, p + 3 * pitch), load(d, p + 4 * pitch), load(d, p + 5 * pitch),
                        load(d, p + 6 * pitch), load(d, p + 7 * pitch));
    store(kFirst ? sum : join<kOp>(load(d, y + i), sum), d, y + i);
  }
  if (i == n) return;
  const auto rest = static_cast<size_t>(n - i);
  auto row = [&](int64_t r) HWY_ATTR { return load(d, x + i + r * pitch, rest); };
  const auto sum = join_eight<kOp>(row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7));
  store(kFirst ? sum : join<kOp>(load(d, y + i, rest), sum), d, y + i, rest);
}

template <Reduction kOp, typename T>
void reduce_columns(const T* x, int64_t pitch, int64_t rows, int64_t columns, Compute<T>* y) {
  int64_t row = 0;
  if (rows >= 8) {
    join_eight_rows<kOp, true>(x, pitch, columns, y);
    for (row = 8; row + 8 <= rows; row += 8)
      join_eight_rows<kOp, false>(x + row * pitch, pitch, columns, y);
  } else {
    map_unary(x, y, columns, [](auto v) HWY_ATTR { return v; });
    row = 1;
  }
  for (; row < rows; ++row) join_range<kOp>(x + row * pitch, y, columns);
}

template <typename T>
void divide_range(T* y, int64_t n, double divisor) {
  const hn::ScalableTag<Compute<T>> d;
  using V = hn::Vec<decltype(d)>;
  const V by = hn::Set(d, static_cast<T>(divisor));
  map_unary(y, y, n, [&](V v) HWY_ATTR { return hn::Div(v, by); });
}

template <typename T>
int64_t argmax_row(const T* x, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto largest = hn::Set(d, static_cast<Compute<T>>(reduce_row<Reduction::Max>(x, n)));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, n - i));
    const auto v = count == static_cast<size_t>(lanes) ? load(d, x + i) : load(d, x + i, count);
    // With a NaN among the numbers `largest` is one, and equals nothing.
    const auto hit = hn::And(hn::Or(hn::Eq(v, largest), hn::IsNaN(v)), hn::FirstN(d, count));
    const auto lane = hn::FindFirstTrue(d, hit);
    if (lane >= 0) return i + lane;
  }
  return 0;
}

template <Reduction kOp, typename T>
constexpr ReduceRanges<T> ranges_of() {
  return {&reduce_row<kOp, T>, &reduce_columns<kOp, T>, &join_range<kOp, Compute<T>>,
          &divide_range<Compute<T>>, &argmax_row<T>};
}

const ReduceTable* reduce_table(Reduction op) {
  static constexpr ReduceTable kTables[] = {
      {ranges_of<Reduction::Sum, float>(), ranges_of<Reduction::Sum, double>(),
       ranges_of<Reduction::Sum, BFloat16>()},
      {ranges_of<Reduction::Max, float>(), ranges_of<Reduction::Max, double>(),
       ranges_of<Reduction::Max, BFloat16>()}};
  return &kTables[static_cast<size_t>(op)];
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
namespace {

HWY_EXPORT(reduce_table);

// A block of a long row: small against the work of a thread, large against a call.
constexpr int64_t kRowBlock = 16384;
// A block of [length, inner]: its partial result is a 128th of what was read, and its columns'
// results stay in L1.
constexpr int64_t kBlockRows = 128;
constexpr int64_t kBlockColumns = 1024;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename T>
struct Step {
  using Sum = Compute<T>;
  Reduction op;
  ExecContext& context;
  const ReduceRanges<T>& ranges;
  int64_t outer, length, inner;

  double join(double a, double b) const {
    if (op == Reduction::Sum) return a + b;
    return a != a || a >= b ? a : b;
  }

  // inner == 1: each output is the reduction of a row.
  void run_rows(const T* x, Sum* y, double divisor) const {
    const int64_t blocks = ceil_div(length, kRowBlock);
    if (blocks == 1) {
      context.parallel_for(
          outer, elementwise_grain(outer, length), [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row)
              y[row] = static_cast<Sum>(ranges.row(x + row * length, length) / divisor);
          });
      return;
    }
    const Workspace<double> partial(context, outer * blocks);
    context.parallel_for(outer * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = i % blocks * kRowBlock;
        partial[i] = ranges.row(x + i / blocks * length + from, std::min(kRowBlock, length - from));
      }
    });
    for (int64_t row = 0; row < outer; ++row) {
      double* part = partial.data() + row * blocks;
      for (int64_t gap = 1; gap < blocks; gap *= 2)
        for (int64_t i = 0; i + gap < blocks; i += 2 * gap) part[i] = join(part[i], part[i + gap]);
      y[row] = static_cast<Sum>(part[0] / divisor);
    }
  }

  // inner > 1: the rows of [length, inner] are reduced into one, for each outer index.
  void run_columns(const T* x, Sum* y, double divisor) const {
    const int64_t blocks = ceil_div(length, kBlockRows);
    const int64_t chunks = ceil_div(inner, kBlockColumns);
    const Workspace<Sum> partial(context, blocks == 1 ? 0 : outer * blocks * inner);
    Sum* parts = blocks == 1 ? y : partial.data();
    const int64_t tasks = outer * blocks * chunks;
    const int64_t task_elements = std::min(length, kBlockRows) * std::min(inner, kBlockColumns);
    context.parallel_for(
        tasks, elementwise_grain(tasks, task_elements), [&](int64_t begin, int64_t end) {
          for (int64_t task = begin; task < end; ++task) {
            const int64_t column = task % chunks * kBlockColumns;
            const int64_t slot = task / chunks;  // outer index and block
            const int64_t row = slot % blocks * kBlockRows;
            ranges.columns(x + (slot / blocks * length + row) * inner + column, inner,
                           std::min(kBlockRows, length - row),
                           std::min(kBlockColumns, inner - column), parts + slot * inner + column);
          }
        });
    if (blocks == 1 && divisor == 1.0) return;
    context.parallel_for(
        outer * chunks, elementwise_grain(outer * chunks, blocks * std::min(inner, kBlockColumns)),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            join_blocks(parts, y, blocks, i / chunks, i % chunks * kBlockColumns, divisor);
        });
  }

  void join_blocks(Sum* parts, Sum* y, int64_t blocks, int64_t index, int64_t column,
                   double divisor) const {
    const int64_t n = std::min(kBlockColumns, inner - column);
    Sum* part = parts + index * blocks * inner + column;
    for (int64_t gap = 1; gap < blocks; gap *= 2)
      for (int64_t i = 0; i + gap < blocks; i += 2 * gap)
        ranges.join(part + (i + gap) * inner, part + i * inner, n);
    Sum* result = y + index * inner + column;
    if (result != part) std::copy_n(part, n, result);
    if (divisor != 1.0) ranges.divide(result, n, divisor);
  }
};

// x's dims merged into groups that are reduced or stay, innermost last; dims of size 1 are dropped.
struct Groups {
  int64_t sizes[kMaxDims];
  bool reduced[kMaxDims];
  int count = 0;

  Groups(const Shape& shape, int64_t dims) {
    for (int i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      const bool is_reduced = (dims >> i & 1) != 0;
      if (count > 0 && reduced[count - 1] == is_reduced) {
        sizes[count - 1] *= shape[i];
      } else {
        sizes[count] = shape[i];
        reduced[count++] = is_reduced;
      }
    }
  }
  int num_reduced() const { return static_cast<int>(std::count(reduced, reduced + count, true)); }
};

// y, of `size` elements, in the type that sums are made in.
template <typename T>
void reduce_groups(Reduction op, ExecContext& context, const ReduceTable& table, const T* x,
                   Groups groups, double divisor, Compute<T>* y, int64_t size) {
  using Sum = Compute<T>;
  const int last = groups.num_reduced();
  if (last == 0) {
    std::transform(x, x + size, y, widen<T>);
    if (divisor != 1.0) table.of<Sum>().divide(y, size, divisor);
    return;
  }
  int group = groups.count - 1;
  while (!groups.reduced[group]) --group;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < group; ++i) outer *= groups.sizes[i];
  for (int i = group + 1; i < groups.count; ++i) inner *= groups.sizes[i];
  const Step<T> step{op, context, table.of<T>(), outer, groups.sizes[group], inner};
  const Workspace<Sum> between(context, last == 1 ? 0 : outer * inner);
  Sum* result = last == 1 ? y : between.data();
  const double by = last == 1 ? divisor : 1.0;
  if (inner == 1) {
    step.run_rows(x, result, by);
  } else {
    step.run_columns(x, result, by);
  }
  if (last == 1) return;
  groups.sizes[group] = 1;
  groups.reduced[group] = false;
  reduce_groups(op, context, table, static_cast<const Sum*>(result), groups, divisor, y, size);
}

}  // namespace

void run_reduce(Reduction op, ExecContext& context, const Tensor& x, int64_t dims, double divisor,
                const Tensor& y) {
  const ReduceTable& table = *HWY_DYNAMIC_DISPATCH(reduce_table)(op);
  const Groups groups(x.shape(), dims);
  const int64_t size = y.numel();
  visit_float(x.dtype(), "reduce", [&]<typename T>() {
    const T* const px = x.data<T>();
    if (y.dtype() == DTypeOf<Compute<T>>::value)
      return reduce_groups(op, context, table, px, groups, divisor, y.data<Compute<T>>(), size);
    const Workspace<Compute<T>> sums(context, size);
    reduce_groups(op, context, table, px, groups, divisor, sums.data(), size);
    std::transform(sums.data(), sums.data() + size, y.data<T>(), narrow<T>);
  });
}

void run_argmax(ExecContext& context, const Tensor& x, int64_t rows, int64_t width,
                const Tensor& y) {
  const ReduceTable& table = *HWY_DYNAMIC_DISPATCH(reduce_table)(Reduction::Max);
  int64_t* indices = y.data<int64_t>();
  auto find_all = [&](const auto* values, auto find) {
    context.parallel_for(rows, elementwise_grain(rows, width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) indices[row] = find(values + row * width, width);
    });
  };
  visit_float(x.dtype(), "argmax",
              [&]<typename T>() { find_all(x.data<T>(), table.of<T>().argmax); });
}

}  // namespace obelisk::ops
#endif  // HWY_ONCE
