// Vector kernels of layer normalisation. A row is read from memory once and then stays in the
// cache: each further pass over it is free of memory traffic.

#include <algorithm>
#include <cmath>

#include "ops/layer_norm/layer_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/layer_norm/layer_norm_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once a target.
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

// Elements below which a second thread costs more than it brings.
constexpr int64_t kGrain = 1 << 14;
// Partial sums in flight, to hide the latency of an addition.
constexpr int kSums = 4;

int64_t rows_per_grain(int64_t width) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
}

// Walks a row: full(slot, i) for whole vectors, with slot < kSums and constant after inlining, then
// partial(i, count) for what is left.
template <typename T, class Full, class Partial>
HWY_INLINE void for_vectors(int64_t n, Full&& full, Partial&& partial) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t i = 0;
  for (; i + kSums * lanes <= n; i += kSums * lanes) {
    full(0, i);
    full(1, i + lanes);
    full(2, i + 2 * lanes);
    full(3, i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) full(0, i);
  if (i < n) partial(i, static_cast<size_t>(n - i));
}

// kSums vectors that add up to one number.
template <typename T>
class Sums {
 public:
  using V = hn::Vec<hn::ScalableTag<T>>;
  // Spelled out, since a loop would become a call of memset and keep the sums in memory.
  HWY_INLINE Sums() : parts_{zero(), zero(), zero(), zero()} {}
  HWY_INLINE void add(int slot, V value) { parts_[slot] = hn::Add(parts_[slot], value); }
  HWY_INLINE void add_product(int slot, V a, V b) { parts_[slot] = hn::MulAdd(a, b, parts_[slot]); }
  HWY_INLINE T total() const {
    const hn::ScalableTag<T> d;
    const auto sum = hn::Add(hn::Add(parts_[0], parts_[1]), hn::Add(parts_[2], parts_[3]));
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

 private:
  static HWY_INLINE V zero() { return hn::Zero(hn::ScalableTag<T>()); }
  V parts_[kSums];
};

template <typename T>
struct Forward {
  using S = Compute<T>;
  const T *x, *residual, *w, *b;  // residual is null without the fused addition, b may be null
  T *y, *sum;
  S *mean, *rstd;
  int64_t width;
  S eps;
  S per_element = width > 0 ? S{1} / static_cast<S>(width) : S{0};

  struct Statistics {
    S first_mean;  // as summed
    S correction;  // what rounding took from it: matters where the mean is large
    S scale;       // rstd
  };

  template <bool kBias>
  HWY_INLINE void finish_row(const T* row, const Statistics& statistics, T* out) const {
    const hn::ScalableTag<S> d;
    const auto mean_v = hn::Set(d, statistics.first_mean);
    const auto scale_v = hn::Set(d, statistics.scale);
    const auto shift = hn::Set(d, -statistics.correction * statistics.scale);
    const auto value = [&](auto x_v, auto w_v, auto b_v) HWY_ATTR __attribute__((always_inline)) {
      const auto n = hn::MulAdd(hn::Sub(x_v, mean_v), scale_v, shift);
      if constexpr (kBias) return hn::MulAdd(n, w_v, b_v);
      return hn::Mul(n, w_v);
    };
    for_vectors<S>(
        width,
        [&](int, int64_t i) HWY_ATTR __attribute__((always_inline)) {
          const auto bias = kBias ? load(d, b + i) : hn::Zero(d);
          store(value(load(d, row + i), load(d, w + i), bias), d, out + i);
        },
        [&](int64_t i, size_t count) HWY_ATTR __attribute__((always_inline)) {
          const auto bias = kBias ? load(d, b + i, count) : hn::Zero(d);
          store(value(load(d, row + i, count), load(d, w + i, count), bias), d, out + i, count);
        });
  }

  template <bool kAdd>
  HWY_INLINE S sum_row(int64_t r) const {
    const hn::ScalableTag<S> d;
    const T* const a = x + r * width;
    Sums<S> total;
    for_vectors<S>(
        width,
        [&](int slot, int64_t i) HWY_ATTR __attribute__((always_inline)) {
          auto value = load(d, a + i);
          if constexpr (kAdd) {
            value = hn::Add(value, load(d, residual + r * width + i));
            store(value, d, sum + r * width + i);
          }
          total.add(slot, value);
        },
        [&](int64_t i, size_t count) HWY_ATTR __attribute__((always_inline)) {
          auto value = load(d, a + i, count);
          if constexpr (kAdd) {
            value = hn::Add(value, load(d, residual + r * width + i, count));
            store(value, d, sum + r * width + i, count);
          }
          total.add(0, value);
        });
    return total.total();
  }

  HWY_INLINE Statistics spread(const T* row, S first_mean) const {
    const hn::ScalableTag<S> d;
    const auto mean_v = hn::Set(d, first_mean);
    Sums<S> deviations, squares;
    for_vectors<S>(
        width,
        [&](int slot, int64_t i) HWY_ATTR __attribute__((always_inline)) {
          const auto deviation = hn::Sub(load(d, row + i), mean_v);
          deviations.add(slot, deviation);
          squares.add_product(slot, deviation, deviation);
        },
        [&](int64_t i, size_t count) HWY_ATTR __attribute__((always_inline)) {
          const auto deviation =
              hn::IfThenElseZero(hn::FirstN(d, count), hn::Sub(load(d, row + i, count), mean_v));
          deviations.add(0, deviation);
          squares.add_product(0, deviation, deviation);
        });
    const S correction = deviations.total() * per_element;
    const S variance = squares.total() * per_element - correction * correction;
    return {first_mean, correction, S{1} / std::sqrt((variance < S{0} ? S{0} : variance) + eps)};
  }

  // Some rows, pass by pass: each pass ends in a sum across lanes, whose latency the next row
  // hides.
  template <bool kAdd, int kRows>
  HWY_INLINE void run_group(int64_t first) const {
    S first_mean[kRows];
    Statistics statistics[kRows];
    const T* const rows = (kAdd ? sum : x) + first * width;
    for (int r = 0; r < kRows; ++r) first_mean[r] = sum_row<kAdd>(first + r) * per_element;
    for (int r = 0; r < kRows; ++r) statistics[r] = spread(rows + r * width, first_mean[r]);
    for (int r = 0; r < kRows; ++r) {
      mean[first + r] = statistics[r].first_mean + statistics[r].correction;
      rstd[first + r] = statistics[r].scale;
      T* const out = y + (first + r) * width;
      if (b != nullptr)
        finish_row<true>(rows + r * width, statistics[r], out);
      else
        finish_row<false>(rows + r * width, statistics[r], out);
    }
  }

  template <bool kAdd>
  HWY_NOINLINE void run_rows(int64_t begin, int64_t end) const {
    int64_t r = begin;
    for (; r + 4 <= end; r += 4) run_group<kAdd, 4>(r);
    for (; r < end; ++r) run_group<kAdd, 1>(r);
  }
};

template <typename T>
const T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

template <typename T>
void layer_norm(const KernelArgs& args) {
  using S = Compute<T>;
  const Forward<T> rows{
      args.inputs[0].data<T>(),      nullptr,
      args.inputs[1].data<T>(),      data_or_null<T>(args.inputs[2]),
      args.outputs[0].data<T>(),     nullptr,
      args.outputs[1].data<S>(),     args.outputs[2].data<S>(),
      args.inputs[0].shape().last(), static_cast<S>(args.attrs.as<LayerNormAttrs>().eps)};
  args.context.parallel_for(
      args.outputs[1].numel(), rows_per_grain(rows.width),
      [&](int64_t begin, int64_t end) { rows.template run_rows<false>(begin, end); });
}

template <typename T>
void add_layer_norm(const KernelArgs& args) {
  using S = Compute<T>;
  const Forward<T> rows{
      args.inputs[0].data<T>(),      args.inputs[1].data<T>(),
      args.inputs[2].data<T>(),      data_or_null<T>(args.inputs[3]),
      args.outputs[0].data<T>(),     args.outputs[1].data<T>(),
      args.outputs[2].data<S>(),     args.outputs[3].data<S>(),
      args.inputs[0].shape().last(), static_cast<S>(args.attrs.as<LayerNormAttrs>().eps)};
  args.context.parallel_for(
      args.outputs[2].numel(), rows_per_grain(rows.width),
      [&](int64_t begin, int64_t end) { rows.template run_rows<true>(begin, end); });
}

template <typename T>
struct Backward {
  using S = Compute<T>;
  const T *dy, *dsum, *x, *w;  // dsum may be null
  const S *mean, *rstd;
  T* dx;
  int64_t width;

  using D = hn::ScalableTag<S>;
  using V = hn::Vec<D>;

  // Means over the row of g and g * n, the latter times rstd: what n = (x - mean) * rstd leaves.
  struct RowMeans {
    S g, gn;
  };
  HWY_INLINE RowMeans row_means(int64_t r) const {
    const D d;
    const auto mean_v = hn::Set(d, mean[r]);
    const T *const x_row = x + r * width, *const dy_row = dy + r * width;
    Sums<S> g_sum, gn_sum;
    for_vectors<S>(
        width,
        [&](int slot, int64_t i) HWY_ATTR __attribute__((always_inline)) {
          const auto g = hn::Mul(load(d, dy_row + i), load(d, w + i));
          g_sum.add(slot, g);
          gn_sum.add_product(slot, g, hn::Sub(load(d, x_row + i), mean_v));
        },
        [&](int64_t i, size_t count) HWY_ATTR __attribute__((always_inline)) {
          const auto g = hn::Mul(load(d, dy_row + i, count), load(d, w + i, count));
          g_sum.add(0, g);
          gn_sum.add_product(0, g, hn::Sub(load(d, x_row + i, count), mean_v));
        });
    const S per_element = width > 0 ? S{1} / static_cast<S>(width) : S{0};
    return {g_sum.total() * per_element, gn_sum.total() * per_element * rstd[r]};
  }

  // kRows rows at once, so that the running sums dw and db are loaded and stored once for all.
  template <int kRows>
  HWY_INLINE void run_rows(int64_t first, S* dw, S* db) const {
    const D d;
    V mean_v[kRows], rstd_v[kRows], g_mean[kRows], gn_mean[kRows];
    for (int r = 0; r < kRows; ++r) {
      const RowMeans means = row_means(first + r);
      mean_v[r] = hn::Set(d, mean[first + r]);
      rstd_v[r] = hn::Set(d, rstd[first + r]);
      g_mean[r] = hn::Set(d, means.g);
      gn_mean[r] = hn::Set(d, means.gn);
    }
    const auto column = [&](auto read, auto write, int64_t i) HWY_ATTR
        __attribute__((always_inline)) {
      const auto w_v = read(w + i);
      auto dw_v = read(dw + i), db_v = read(db + i);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        const int64_t at = (first + r) * width + i;
        const auto dy_v = read(dy + at);
        const auto n = hn::Mul(hn::Sub(read(x + at), mean_v[r]), rstd_v[r]);
        const auto inner = hn::NegMulAdd(n, gn_mean[r], hn::MulSub(dy_v, w_v, g_mean[r]));
        const auto gradient = hn::Mul(inner, rstd_v[r]);
        write(dsum != nullptr ? hn::Add(gradient, read(dsum + at)) : gradient, dx + at);
        dw_v = hn::MulAdd(dy_v, n, dw_v);
        db_v = hn::Add(db_v, dy_v);
      }
      write(dw_v, dw + i);
      write(db_v, db + i);
    };
    for_vectors<S>(
        width,
        [&](int, int64_t i) HWY_ATTR __attribute__((always_inline)) {
          column(
              [&](const auto* p) HWY_ATTR __attribute__((always_inline)) { return load(d, p); },
              [&](V v, auto* p) HWY_ATTR __attribute__((always_inline)) { store(v, d, p); }, i);
        },
        [&](int64_t i, size_t count) HWY_ATTR __attribute__((always_inline)) {
          column(
              [&](const auto* p) HWY_ATTR
              __attribute__((always_inline)) { return load(d, p, count); },
              [&](V v, auto* p) HWY_ATTR __attribute__((always_inline)) { store(v, d, p, count); },
              i);
        });
  }

  // Adds the rows' shares to dw and db.
  HWY_NOINLINE void run_block(int64_t begin, int64_t end, S* dw, S* db) const {
    int64_t r = begin;
    for (; r + 2 <= end; r += 2) run_rows<2>(r, dw, db);
    for (; r < end; ++r) run_rows<1>(r, dw, db);
  }
};

// out[i] = sum over blocks of part[block * stride + i], in block order.
template <typename T>
HWY_NOINLINE void add_blocks(const T* part, int64_t num_blocks, int64_t stride, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const auto total = [&](int64_t i, auto load) HWY_ATTR __attribute__((always_inline)) {
    auto sum = hn::Zero(d);
    for (int64_t block = 0; block < num_blocks; ++block)
      sum = hn::Add(sum, load(part + block * stride + i));
    return sum;
  };
  for_vectors<T>(
      n,
      [&](int, int64_t i) HWY_ATTR __attribute__((always_inline)) {
        hn::StoreU(total(
                       i, [&](const T* p) HWY_ATTR
                       __attribute__((always_inline)) { return hn::LoadU(d, p); }),
                   d, out + i);
      },
      [&](int64_t i, size_t count) HWY_ATTR __attribute__((always_inline)) {
        store_partial(total(
                          i, [&](const T* p) HWY_ATTR
                          __attribute__((always_inline)) { return load_partial(d, p, count); }),
                      d, out + i, count);
      });
}

// Rows of a block: enough work for a thread, and at most kMaxBlocks partial sums to add up. A
// function of the shape alone.
int64_t backward_block(int64_t rows, int64_t width) {
  constexpr int64_t kMaxBlocks = 64, kElements = 1 << 13;
  const int64_t block =
      std::max((rows + kMaxBlocks - 1) / kMaxBlocks, kElements / std::max<int64_t>(1, width));
  return (block + 4) / 4 * 4;
}

template <typename T>
void layer_norm_backward(const KernelArgs& args) {
  using S = Compute<T>;
  const Backward<T> rows{args.inputs[0].data<T>(),  data_or_null<T>(args.inputs[1]),
                         args.inputs[2].data<T>(),  args.inputs[3].data<T>(),
                         args.inputs[4].data<S>(),  args.inputs[5].data<S>(),
                         args.outputs[0].data<T>(), args.inputs[2].shape().last()};
  const int64_t num_rows = args.inputs[4].numel(), width = rows.width;
  const int64_t block_rows = backward_block(num_rows, width);
  const int64_t num_blocks = (num_rows + block_rows - 1) / block_rows;
  const Workspace<S> parts(args.context, num_blocks * 2 * width);
  args.context.for_each_block(num_rows, block_rows, [&](int64_t block, int64_t begin, int64_t end) {
    S* const dw = parts.data() + block * 2 * width;
    std::fill_n(dw, 2 * width, S{0});
    rows.run_block(begin, end, dw, dw + width);
  });
  for (size_t k = 1; k < args.outputs.size(); ++k) {
    const S* const part = parts.data() + static_cast<int64_t>(k - 1) * width;
    S* const out = args.outputs[k].data<S>();
    args.context.parallel_for(
        width, std::max<int64_t>(64, kGrain / std::max<int64_t>(1, num_blocks)),
        [&](int64_t begin, int64_t end) {
          add_blocks(part + begin, num_blocks, 2 * width, end - begin, out + begin);
        });
  }
}

void forward_kernel(const KernelArgs& args) {
  visit_float(args.inputs[0].dtype(), "layer_norm", [&]<typename T>() { layer_norm<T>(args); });
}
void add_kernel(const KernelArgs& args) {
  visit_float(args.inputs[0].dtype(), "add_layer_norm",
              [&]<typename T>() { add_layer_norm<T>(args); });
}
void backward_kernel(const KernelArgs& args) {
  visit_float(args.inputs[0].dtype(), "layer_norm_backward",
              [&]<typename T>() { layer_norm_backward<T>(args); });
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
HWY_EXPORT(forward_kernel);
HWY_EXPORT(add_kernel);
HWY_EXPORT(backward_kernel);
void layer_norm_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(forward_kernel)(args); }
void add_layer_norm_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(add_kernel)(args); }
void layer_norm_backward_cpu(const KernelArgs& args) {
  HWY_DYNAMIC_DISPATCH(backward_kernel)(args);
}
}  // namespace obelisk::ops
#endif
