// Vector kernels: every member of the family is one formula on vectors; loops, layouts and dtypes
// come from templates.
#include <array>
#include <utility>

#include "ops/elementwise/kernels.h"
#include "ops/elementwise/strided.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/elementwise_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway's headers stand after foreach_target.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

#ifndef OBELISK_OPS_ELEMENTWISE_TABLES_
#define OBELISK_OPS_ELEMENTWISE_TABLES_
namespace obelisk::ops {
namespace {

template <typename T, typename B = T>
using BinaryRange = void (*)(const T* a, const B* b, T* y, int64_t n);
template <typename T>
using UnaryRange = void (*)(const T* x, T* y, int64_t n, double parameter);

// Which operands advance along a row; the other one is a single repeated element.
enum Layout : int { kBothAdvance, kFirstAdvances, kSecondAdvances, kNumLayouts };

struct BinaryRanges {
  BinaryRange<float> f32[kNumLayouts];
  BinaryRange<double> f64[kNumLayouts];
  BinaryRange<BFloat16> bf16[kNumLayouts];
};
struct UnaryRanges {
  UnaryRange<float> f32;
  UnaryRange<double> f64;
  UnaryRange<BFloat16> bf16;
};

}  // namespace
}  // namespace obelisk::ops
#endif  // OBELISK_OPS_ELEMENTWISE_TABLES_

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// exp on all of the line: Highway's own is valid up to `top` and loses NaN.
template <class D, class V>
HWY_INLINE V exp_full(D d, V x) {
  const V top = constant(d, sizeof(hn::TFromD<D>) == 4 ? 104.0 : 710.5);  // exp(top) overflows
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, hn::Min(x, top)));
}

// log with its edges: log 0 = -inf, log of a negative number NaN, log inf = inf, NaN stays.
template <class D, class V>
HWY_INLINE V log_full(D d, V x) {
  const V zero = hn::Zero(d);
  const V infinity = hn::Inf(d);
  const V regular = hn::Log(d, x);
  const V at_zero = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), regular);
  const V positive = hn::IfThenElse(hn::Eq(x, infinity), infinity, at_zero);
  return hn::IfThenElse(hn::Ge(x, zero), positive, hn::NaN(d));
}

template <Binary kOp, class D, class V>
HWY_INLINE V evaluate(D d, V a, V b) {
  const V zero = hn::Zero(d);
  const V one = constant(d, 1.0);
  if constexpr (kOp == Binary::Add) return hn::Add(a, b);
  if constexpr (kOp == Binary::Subtract) return hn::Sub(a, b);
  if constexpr (kOp == Binary::Multiply) return hn::Mul(a, b);
  if constexpr (kOp == Binary::Divide) return hn::Div(a, b);
  if constexpr (kOp == Binary::SqrtBackward) return hn::Div(hn::Mul(constant(d, 0.5), b), a);
  if constexpr (kOp == Binary::RsqrtBackward)
    return hn::Mul(hn::Mul(constant(d, -0.5), b), hn::Mul(hn::Mul(a, a), a));
  if constexpr (kOp == Binary::SquareBackward) return hn::Mul(hn::Add(a, a), b);
  if constexpr (kOp == Binary::TanhBackward) return hn::Mul(b, hn::NegMulAdd(a, a, one));
  if constexpr (kOp == Binary::ReciprocalBackward) return hn::Neg(hn::Mul(b, hn::Mul(a, a)));
  if constexpr (kOp == Binary::AbsBackward)
    return hn::IfThenElse(hn::Gt(a, zero), b, hn::IfThenElseZero(hn::Lt(a, zero), hn::Neg(b)));
  if constexpr (kOp == Binary::ReluBackward) return hn::IfThenElseZero(hn::Gt(a, zero), b);
  if constexpr (kOp == Binary::SigmoidBackward) return hn::Mul(b, hn::Mul(a, hn::Sub(one, a)));
}

template <Unary kOp, class D, class V>
HWY_INLINE V evaluate(D d, V x, V parameter) {
  const V one = constant(d, 1.0);
  if constexpr (kOp == Unary::Negate) return hn::Neg(x);
  if constexpr (kOp == Unary::Exp) return exp_full(d, x);
  if constexpr (kOp == Unary::Log) return log_full(d, x);
  if constexpr (kOp == Unary::Sqrt) return hn::Sqrt(x);
  if constexpr (kOp == Unary::Rsqrt) return hn::Div(one, hn::Sqrt(x));
  if constexpr (kOp == Unary::Square) return hn::Mul(x, x);
  if constexpr (kOp == Unary::Tanh) return hn::Tanh(d, x);
  if constexpr (kOp == Unary::Reciprocal) return hn::Div(one, x);
  if constexpr (kOp == Unary::Abs) return hn::Abs(x);
  if constexpr (kOp == Unary::Relu) return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  if constexpr (kOp == Unary::Sigmoid) return hn::Div(one, hn::Add(one, exp_full(d, hn::Neg(x))));
  if constexpr (kOp == Unary::Scale) return hn::Mul(x, parameter);
  if constexpr (kOp == Unary::AddScalar) return hn::Add(x, parameter);
}

template <Binary kOp, Layout kLayout, typename T>
void binary_range(const T* a, const T* b, T* y, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  using V = hn::Vec<decltype(d)>;
  if constexpr (kLayout == kBothAdvance) {
    map_binary(a, b, y, n, [&](V x, V z) HWY_ATTR { return evaluate<kOp>(d, x, z); });
  } else if constexpr (kLayout == kFirstAdvances) {
    const V repeated = hn::Set(d, widen(*b));
    map_unary(a, y, n, [&](V x) HWY_ATTR { return evaluate<kOp>(d, x, repeated); });
  } else {
    const V repeated = hn::Set(d, widen(*a));
    map_unary(b, y, n, [&](V x) HWY_ATTR { return evaluate<kOp>(d, repeated, x); });
  }
}

// y = a + b, where b alone is bf16: exact products of narrower gradients into a wider sum.
void add_bf16(const float* a, const BFloat16* b, float* y, int64_t n) {
  using V = hn::Vec<hn::ScalableTag<float>>;
  map_binary(a, b, y, n, [](V x, V z) HWY_ATTR { return hn::Add(x, z); });
}

template <Unary kOp, typename T>
void unary_range(const T* x, T* y, int64_t n, double parameter) {
  const hn::ScalableTag<Compute<T>> d;
  using V = hn::Vec<decltype(d)>;
  const V p = constant(d, parameter);
  map_unary(x, y, n, [&](V v) HWY_ATTR { return evaluate<kOp>(d, v, p); });
}

template <Binary kOp>
constexpr BinaryRanges ranges_of() {
  return {{&binary_range<kOp, kBothAdvance, float>, &binary_range<kOp, kFirstAdvances, float>,
           &binary_range<kOp, kSecondAdvances, float>},
          {&binary_range<kOp, kBothAdvance, double>, &binary_range<kOp, kFirstAdvances, double>,
           &binary_range<kOp, kSecondAdvances, double>},
          {&binary_range<kOp, kBothAdvance, BFloat16>, &binary_range<kOp, kFirstAdvances, BFloat16>,
           &binary_range<kOp, kSecondAdvances, BFloat16>}};
}

template <size_t... kIndices>
const BinaryRanges* binary_table(Binary op, std::index_sequence<kIndices...>) {
  static constexpr std::array<BinaryRanges, sizeof...(kIndices)> kTable{
      ranges_of<static_cast<Binary>(kIndices)>()...};
  return &kTable[static_cast<size_t>(op)];
}
template <size_t... kIndices>
const UnaryRanges* unary_table(Unary op, std::index_sequence<kIndices...>) {
  static constexpr std::array<UnaryRanges, sizeof...(kIndices)> kTable{
      UnaryRanges{&unary_range<static_cast<Unary>(kIndices), float>,
                  &unary_range<static_cast<Unary>(kIndices), double>,
                  &unary_range<static_cast<Unary>(kIndices), BFloat16>}...};
  return &kTable[static_cast<size_t>(op)];
}

const BinaryRanges* binary_ranges(Binary op) {
  return binary_table(op, std::make_index_sequence<kNumBinary>());
}
const UnaryRanges* unary_ranges(Unary op) {
  return unary_table(op, std::make_index_sequence<kNumUnary>());
}
BinaryRange<float, BFloat16> add_bf16_range() { return add_bf16; }

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
namespace {

HWY_EXPORT(binary_ranges);
HWY_EXPORT(unary_ranges);
HWY_EXPORT(add_bf16_range);

template <typename T, typename Ranges>
auto ranges_for(const Ranges& ranges) {
  if constexpr (std::is_same_v<T, float>) {
    return ranges.f32;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ranges.bf16;
  } else {
    return ranges.f64;
  }
}

// Rows whose elements do not lie side by side go through small dense buffers.
constexpr int64_t kPacked = 256;

template <typename T>
void gather(const T* source, int64_t step, int64_t n, T* packed) {
  for (int64_t i = 0; i < n; ++i) packed[i] = source[i * step];
}
template <typename T>
void scatter(const T* packed, int64_t step, int64_t n, T* destination) {
  for (int64_t i = 0; i < n; ++i) destination[i * step] = packed[i];
}

template <typename T, typename B>
void binary_packed(BinaryRange<T, B> range, const T* a, const B* b, T* y,
                   const std::array<int64_t, 3>& steps, int64_t n) {
  T packed_a[kPacked], packed_y[kPacked];
  B packed_b[kPacked];
  for (int64_t i = 0; i < n; i += kPacked) {
    const int64_t count = std::min(kPacked, n - i);
    gather(a + i * steps[0], steps[0], count, packed_a);
    gather(b + i * steps[1], steps[1], count, packed_b);
    range(packed_a, packed_b, packed_y, count);
    scatter(packed_y, steps[2], count, y + i * steps[2]);
  }
}

StridedLoop<3> broadcast_loop(const Tensor& a, const Tensor& b, const Tensor& y) {
  return {y.shape(),
          {broadcast_strides(a, y.shape()), broadcast_strides(b, y.shape()), y.strides()}};
}

template <typename T>
void run_binary_as(Binary op, ExecContext& context, const Tensor& a, const Tensor& b,
                   const Tensor& y) {
  const BinaryRange<T>* ranges = ranges_for<T>(*HWY_DYNAMIC_DISPATCH(binary_ranges)(op));
  const StridedLoop<3> loop = broadcast_loop(a, b, y);
  const T* pa = a.data<T>();
  const T* pb = b.data<T>();
  T* py = y.data<T>();
  const auto steps = loop.steps();
  const bool dense = steps[2] == 1 && steps[0] <= 1 && steps[1] <= 1;
  const Layout layout = steps[1] == 0   ? kFirstAdvances
                        : steps[0] == 0 ? kSecondAdvances
                                        : kBothAdvance;
  loop.parallel(context, [&](const std::array<int64_t, 3>& at, int64_t n) {
    if (dense) {
      ranges[layout](pa + at[0], pb + at[1], py + at[2], n);
    } else {
      binary_packed(ranges[kBothAdvance], pa + at[0], pb + at[1], py + at[2], steps, n);
    }
  });
}

template <typename T>
void run_unary_as(Unary op, ExecContext& context, const Tensor& x, double parameter,
                  const Tensor& y) {
  const UnaryRange<T> range = ranges_for<T>(*HWY_DYNAMIC_DISPATCH(unary_ranges)(op));
  const StridedLoop<2> loop(y.shape(), {x.strides(), y.strides()});
  const T* px = x.data<T>();
  T* py = y.data<T>();
  const auto steps = loop.steps();
  loop.parallel(context, [&](const std::array<int64_t, 2>& at, int64_t n) {
    if (steps[0] == 1) return range(px + at[0], py + at[1], n, parameter);
    T packed[kPacked];
    for (int64_t i = 0; i < n; i += kPacked) {
      const int64_t count = std::min(kPacked, n - i);
      gather(px + at[0] + i * steps[0], steps[0], count, packed);
      range(packed, py + at[1] + i, count, parameter);
    }
  });
}

}  // namespace

void run_binary(Binary op, ExecContext& context, const Tensor& a, const Tensor& b,
                const Tensor& y) {
  visit_float(y.dtype(), "elementwise",
              [&]<typename T>() { run_binary_as<T>(op, context, a, b, y); });
}

void run_accumulate_bf16(ExecContext& context, const Tensor& destination, const Tensor& x) {
  const BinaryRange<float, BFloat16> range = HWY_DYNAMIC_DISPATCH(add_bf16_range)();
  const StridedLoop<3> loop = broadcast_loop(destination, x, destination);
  float* sums = destination.data<float>();
  const BFloat16* px = x.data<BFloat16>();
  const auto steps = loop.steps();
  const bool dense = steps[0] == 1 && steps[1] == 1;
  loop.parallel(context, [&](const std::array<int64_t, 3>& at, int64_t n) {
    float* const y = sums + at[0];
    if (dense) {
      range(y, px + at[1], y, n);
    } else {
      binary_packed(range, static_cast<const float*>(y), px + at[1], y, steps, n);
    }
  });
}

void run_unary(Unary op, ExecContext& context, const Tensor& x, double parameter, const Tensor& y) {
  visit_float(y.dtype(), "elementwise",
              [&]<typename T>() { run_unary_as<T>(op, context, x, parameter, y); });
}

}  // namespace obelisk::ops
#endif  // HWY_ONCE
