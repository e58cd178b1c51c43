// Matrix-vector products. They read the matrix once and wait for memory; no packing.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/gemv_cpu.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "ops/common/simd-inl.h"
#include "ops/matmul/gemm_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// <x, w>: four chains of vectors, added pairwise, and the lanes at the end.
template <typename T>
Compute<T> dot(const Compute<T>* x, const T* w, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::MulAdd(load(d, x + i), load(d, w + i), s0);
    s1 = hn::MulAdd(load(d, x + i + lanes), load(d, w + i + lanes), s1);
    s2 = hn::MulAdd(load(d, x + i + 2 * lanes), load(d, w + i + 2 * lanes), s2);
    s3 = hn::MulAdd(load(d, x + i + 3 * lanes), load(d, w + i + 3 * lanes), s3);
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::MulAdd(load(d, x + i), load(d, w + i), s0);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    s1 = hn::MulAdd(load(d, x + i, rest), load(d, w + i, rest), s1);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

template <typename T, typename C>
Compute<T> start_value(const GemvProblem<T, C>& p, int64_t j) {
  if (p.accumulate) return widen(p.y[j]);
  return p.bias != nullptr ? widen(p.bias[j * p.bias_step]) : Compute<T>{0};
}

// y[j] += x0 w0[j] + ... + x3 w3[j], added in this order, for n columns.
template <typename T>
void add_four_rows(const Compute<T>* x, const T* w, int64_t stride, Compute<T>* y, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto x0 = hn::Set(d, x[0]), x1 = hn::Set(d, x[1]), x2 = hn::Set(d, x[2]),
             x3 = hn::Set(d, x[3]);
  const T *w0 = w, *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride;
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    auto sum = hn::MulAdd(x0, load(d, w0 + j), load(d, y + j));
    sum = hn::MulAdd(x1, load(d, w1 + j), sum);
    sum = hn::MulAdd(x2, load(d, w2 + j), sum);
    store(hn::MulAdd(x3, load(d, w3 + j), sum), d, y + j);
  }
  if (j < n) {
    const auto rest = static_cast<size_t>(n - j);
    auto sum = hn::MulAdd(x0, load(d, w0 + j, rest), load(d, y + j, rest));
    sum = hn::MulAdd(x1, load(d, w1 + j, rest), sum);
    sum = hn::MulAdd(x2, load(d, w2 + j, rest), sum);
    store(hn::MulAdd(x3, load(d, w3 + j, rest), sum), d, y + j, rest);
  }
}

template <typename T>
void add_row(Compute<T> x, const T* w, Compute<T>* y, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  const auto scale = hn::Set(d, x);
  map_binary(w, y, y, n, [&](auto row, auto sum) HWY_ATTR { return hn::MulAdd(scale, row, sum); });
}

// The sums of columns [j0, j0 + n) in y, which holds their start values.
template <typename T, typename C>
void add_rows(const GemvProblem<T, C>& p, int64_t j0, int64_t n, Compute<T>* y) {
  int64_t k = 0;
  for (; k + 4 <= p.k; k += 4) add_four_rows(p.x + k, p.w + k * p.stride + j0, p.stride, y, n);
  for (; k < p.k; ++k) add_row(p.x[k], p.w + k * p.stride + j0, y, n);
}

template <typename T, typename C>
void multiply(const GemvProblem<T, C>& p, int64_t begin, int64_t end) {
  if (p.rows) {
    for (int64_t j = begin; j < end; ++j)
      p.y[j] = narrow<C>(start_value(p, j) + dot(p.x, p.w + j * p.stride, p.k));
    return;
  }
  // So many columns that their sums stay in the first-level cache while rows pass by.
  constexpr int64_t kColumns = 8192 / sizeof(Compute<T>);
  for (int64_t j0 = begin; j0 < end; j0 += kColumns) {
    const int64_t n = std::min(kColumns, end - j0);
    if constexpr (std::is_same_v<C, Compute<T>>) {
      for (int64_t j = j0; j < j0 + n; ++j) p.y[j] = start_value(p, j);
      add_rows(p, j0, n, p.y + j0);
    } else {
      Compute<T> sums[kColumns];
      for (int64_t j = 0; j < n; ++j) sums[j] = start_value(p, j0 + j);
      add_rows(p, j0, n, sums);
      map_unary(sums, p.y + j0, n, [](auto v) HWY_ATTR { return v; });
    }
  }
}

void gemv_f32(const GemvProblem<float>& problem, int64_t begin, int64_t end) {
  multiply(problem, begin, end);
}
void gemv_f64(const GemvProblem<double>& problem, int64_t begin, int64_t end) {
  multiply(problem, begin, end);
}
void gemv_bf16(const GemvProblem<BFloat16>& problem, int64_t begin, int64_t end) {
  multiply(problem, begin, end);
}
void gemv_bf16_f32(const GemvProblem<BFloat16, float>& problem, int64_t begin, int64_t end) {
  multiply(problem, begin, end);
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {

HWY_EXPORT(gemv_f32);
HWY_EXPORT(gemv_f64);
HWY_EXPORT(gemv_bf16);
HWY_EXPORT(gemv_bf16_f32);

void gemv_range(const GemvProblem<float>& problem, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemv_f32)(problem, begin, end);
}
void gemv_range(const GemvProblem<double>& problem, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemv_f64)(problem, begin, end);
}
void gemv_range(const GemvProblem<BFloat16>& problem, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemv_bf16)(problem, begin, end);
}
void gemv_range(const GemvProblem<BFloat16, float>& problem, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemv_bf16_f32)(problem, begin, end);
}

}  // namespace obelisk::ops
#endif
