// Vector kernels of cross-entropy: rows are independent; the loss adds them in order, in double.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cross_entropy/cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cross_entropy/cross_entropy_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once a target.
#include <hwy/highway.h>

#include "ops/common/exp2-inl.h"
#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

constexpr double kLog2E = 1.4426950408889634;

// Logits below which a second thread costs more than it brings.
constexpr int64_t kGrainElements = 1 << 13;
int64_t grain_rows(int64_t width) {
  return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, width));
}

template <typename T>
struct RowStatistics {
  T largest;
  T sum;  // of exp(x - largest)
};

template <typename T>
Compute<T> row_max(const T* x, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n < lanes) {
    Compute<T> largest = n == 0 ? Compute<T>{0} : widen(x[0]);
    for (int64_t i = 1; i < n; ++i) largest = std::max(largest, widen(x[i]));
    return largest;
  }
  auto m0 = load(d, x), m1 = m0;
  int64_t i = lanes;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    m0 = hn::Max(m0, load(d, x + i));
    m1 = hn::Max(m1, load(d, x + i + lanes));
  }
  // The last vectors may overlap what was seen: a maximum does not mind.
  for (; i < n; i += lanes) m0 = hn::Max(m0, load(d, x + std::min(i, n - lanes)));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

// exp(x - largest); the difference is taken first, so that large logits keep their digits.
template <class D, class V>
HWY_INLINE V shifted_exp(D d, V x, V largest) {
  return exp2(d, hn::Mul(hn::Sub(x, largest), hn::Set(d, static_cast<hn::TFromD<D>>(kLog2E))));
}

template <typename T>
RowStatistics<Compute<T>> row_statistics(const T* x, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Compute<T> largest = row_max(x, n);
  const auto m = hn::Set(d, largest);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, shifted_exp(d, load(d, x + i), m));
    s1 = hn::Add(s1, shifted_exp(d, load(d, x + i + lanes), m));
    s2 = hn::Add(s2, shifted_exp(d, load(d, x + i + 2 * lanes), m));
    s3 = hn::Add(s3, shifted_exp(d, load(d, x + i + 3 * lanes), m));
  }
  for (; i < n; i += lanes) {
    const auto rest = static_cast<size_t>(std::min(lanes, n - i));
    const auto e = shifted_exp(d, load(d, x + i, rest), m);
    s0 = hn::Add(s0, hn::IfThenElseZero(hn::FirstN(d, rest), e));
  }
  return {largest, hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))))};
}

// y = upstream * (softmax(x) - onehot(target)); zero for target -1. In place when y == x.
template <typename T, typename Y, typename S = Compute<T>>
void row_gradient(const T* x, Y* y, int64_t n, int64_t target, const RowStatistics<S>& row,
                  S upstream) {
  if (target < 0) return void(std::fill_n(y, n, Y{}));
  const hn::ScalableTag<S> d;
  const auto m = hn::Set(d, row.largest);
  const auto factor = hn::Set(d, upstream / row.sum);
  const auto scaled = [&](auto v) HWY_ATTR { return hn::Mul(shifted_exp(d, v, m), factor); };
  const S at_target = hn::GetLane(scaled(hn::Set(d, widen(x[target])))) - upstream;
  map_unary(x, y, n, scaled);
  y[target] = narrow<Y>(at_target);
}

template <typename T>
double row_loss(const T* x, int64_t target, const RowStatistics<Compute<T>>& row) {
  if (target < 0) return 0.0;
  return std::log(static_cast<double>(row.sum)) +
         (static_cast<double>(row.largest) - static_cast<double>(widen(x[target])));
}

void cross_entropy_kernel(const KernelArgs& args) {
  const int64_t rows = args.inputs[0].dim(0), width = args.inputs[0].dim(1);
  check_targets("cross_entropy", args.inputs[1], width);
  visit_float(args.inputs[0].dtype(), "cross_entropy", [&]<typename T>() {
    using S = Compute<T>;
    const T* x = args.inputs[0].data<T>();
    const int64_t* targets = args.inputs[1].data<int64_t>();
    S* largest = args.outputs[1].data<S>();
    S* sums = args.outputs[2].data<S>();
    const Workspace<double> losses(args.context, rows);
    args.context.parallel_for(rows, grain_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const RowStatistics<S> row = row_statistics(x + n * width, width);
        largest[n] = row.largest;
        sums[n] = row.sum;
        losses[n] = row_loss(x + n * width, targets[n], row);
      }
    });
    double loss = 0;
    for (int64_t n = 0; n < rows; ++n) loss += losses[n];
    *args.outputs[0].data<S>() = static_cast<S>(loss);
  });
}

void cross_entropy_backward_kernel(const KernelArgs& args) {
  const int64_t rows = args.inputs[0].dim(0), width = args.inputs[0].dim(1);
  visit_float(args.inputs[0].dtype(), "cross_entropy_backward", [&]<typename T>() {
    using S = Compute<T>;
    const T* x = args.inputs[0].data<T>();
    T* dx = args.outputs[0].data<T>();
    const int64_t* targets = args.inputs[1].data<int64_t>();
    const S upstream = args.inputs[4].item<S>();
    args.context.parallel_for(rows, grain_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        row_gradient(x + n * width, dx + n * width, width, targets[n],
                     {args.inputs[2].data<S>()[n], args.inputs[3].data<S>()[n]}, upstream);
    });
  });
}

template <typename T, typename G>
void loss_rows(const T* logits, const int64_t* targets, int64_t rows, int64_t width, G* gradients,
               double* losses) {
  ExecContext::current().parallel_for(rows, grain_rows(width), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* x = logits + n * width;
      const RowStatistics<T> row = row_statistics(x, width);
      losses[n] = row_loss(x, targets[n], row);
      if (gradients != nullptr)
        row_gradient(x, gradients + n * width, width, targets[n], row, T{1});
    }
  });
}

void loss_rows_f32(const float* logits, const int64_t* targets, int64_t rows, int64_t width,
                   float* gradients, double* losses) {
  loss_rows(logits, targets, rows, width, gradients, losses);
}
void loss_rows_bf16(const float* logits, const int64_t* targets, int64_t rows, int64_t width,
                    BFloat16* gradients, double* losses) {
  loss_rows(logits, targets, rows, width, gradients, losses);
}
void loss_rows_f64(const double* logits, const int64_t* targets, int64_t rows, int64_t width,
                   double* gradients, double* losses) {
  loss_rows(logits, targets, rows, width, gradients, losses);
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {

HWY_EXPORT(cross_entropy_kernel);
HWY_EXPORT(cross_entropy_backward_kernel);
HWY_EXPORT(loss_rows_f32);
HWY_EXPORT(loss_rows_bf16);
HWY_EXPORT(loss_rows_f64);

void cross_entropy_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(cross_entropy_kernel)(args); }
void cross_entropy_backward_cpu(const KernelArgs& args) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_backward_kernel)(args);
}

template <>
void softmax_loss_rows(const float* logits, const int64_t* targets, int64_t rows,
                       int64_t vocabulary, float* gradients, double* losses) {
  HWY_DYNAMIC_DISPATCH(loss_rows_f32)(logits, targets, rows, vocabulary, gradients, losses);
}
template <>
void softmax_loss_rows(const float* logits, const int64_t* targets, int64_t rows,
                       int64_t vocabulary, BFloat16* gradients, double* losses) {
  HWY_DYNAMIC_DISPATCH(loss_rows_bf16)(logits, targets, rows, vocabulary, gradients, losses);
}
template <>
void softmax_loss_rows(const double* logits, const int64_t* targets, int64_t rows,
                       int64_t vocabulary, double* gradients, double* losses) {
  HWY_DYNAMIC_DISPATCH(loss_rows_f64)(logits, targets, rows, vocabulary, gradients, losses);
}

}  // namespace obelisk::ops
#endif  // HWY_ONCE
