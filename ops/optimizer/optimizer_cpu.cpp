// Vector kernels over flat buffers; both are bound by memory, so each byte is touched once.

#include <algorithm>

#include "ops/optimizer/optimizer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optimizer/optimizer_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once a target.
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

// Elements of one partial sum; part of the result's definition, as it fixes the order of additions.
constexpr int64_t kNormBlock = 1 << 14;
// Elements below which a second thread costs more than it brings.
constexpr int64_t kUpdateGrain = 1 << 13;

// n <= Lanes of f64 elements from memory as f64 lanes; the others are zero.
template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const double* p, size_t n) {
  return n == hn::Lanes(d) ? hn::LoadU(d, p) : load_partial(d, p, n);
}
template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const float* p, size_t n) {
  const hn::Rebind<float, D> narrow;
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(double)] = {};
  if (n == hn::Lanes(d)) return hn::PromoteTo(d, hn::LoadU(narrow, p));
  std::copy(p, p + n, lanes);
  return hn::PromoteTo(d, hn::Load(narrow, lanes));
}

template <typename T>
double block_squared_norm(const T* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Four sums, so that additions overlap.
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto full = static_cast<size_t>(lanes);
    const auto a = load_wide(d, x + i, full), b = load_wide(d, x + i + lanes, full);
    const auto c = load_wide(d, x + i + 2 * lanes, full), e = load_wide(d, x + i + 3 * lanes, full);
    s0 = hn::MulAdd(a, a, s0);
    s1 = hn::MulAdd(b, b, s1);
    s2 = hn::MulAdd(c, c, s2);
    s3 = hn::MulAdd(e, e, s3);
  }
  for (; i < n; i += lanes) {
    const auto a = load_wide(d, x + i, static_cast<size_t>(std::min(lanes, n - i)));
    s0 = hn::MulAdd(a, a, s0);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

void squared_norm_kernel(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "squared_norm", [&]<typename T>() {
    const T* x = args.inputs[0].data<T>();
    const int64_t n = args.inputs[0].numel();
    const int64_t num_blocks = (n + kNormBlock - 1) / kNormBlock;
    const Workspace<double> partial(args.context, num_blocks);
    args.context.for_each_block(n, kNormBlock, [&](int64_t block, int64_t begin, int64_t end) {
      partial[block] = block_squared_norm(x + begin, end - begin);
    });
    double sum = 0;
    for (int64_t block = 0; block < num_blocks; ++block) sum += partial[block];
    *args.outputs[0].data<double>() = sum;
  });
}

// copy: p in bf16, or null.
template <typename T>
void update(T* p, T* m, T* v, const T* grad, BFloat16* copy, int64_t n, const AdamWConstants& c) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  auto constant = [&](double x) { return hn::Set(d, static_cast<T>(x)); };
  const V clip = constant(c.clip), keep = constant(c.keep), beta2 = constant(c.beta2);
  const V one_minus_beta1 = constant(c.one_minus_beta1);
  const V one_minus_beta2 = constant(c.one_minus_beta2);
  const V step_size = constant(c.step_size), inverse_root = constant(c.inverse_root);
  const V epsilon = constant(c.epsilon);
  auto step = [&](V& pv, V& mv, V& vv, V g) HWY_ATTR {
    g = hn::Mul(g, clip);
    mv = hn::MulAdd(one_minus_beta1, hn::Sub(g, mv), mv);
    vv = hn::MulAdd(hn::Mul(one_minus_beta2, g), g, hn::Mul(beta2, vv));
    const V denominator = hn::MulAdd(hn::Sqrt(vv), inverse_root, epsilon);
    pv = hn::NegMulAdd(step_size, hn::Div(mv, denominator), hn::Mul(keep, pv));
  };
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V pv = hn::LoadU(d, p + i), mv = hn::LoadU(d, m + i), vv = hn::LoadU(d, v + i);
    step(pv, mv, vv, hn::LoadU(d, grad + i));
    hn::StoreU(pv, d, p + i);
    hn::StoreU(mv, d, m + i);
    hn::StoreU(vv, d, v + i);
    if constexpr (std::is_same_v<T, float>)
      if (copy != nullptr) store(pv, d, copy + i);
  }
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    V pv = load_partial(d, p + i, rest), mv = load_partial(d, m + i, rest);
    V vv = load_partial(d, v + i, rest);
    step(pv, mv, vv, load_partial(d, grad + i, rest));
    store_partial(pv, d, p + i, rest);
    store_partial(mv, d, m + i, rest);
    store_partial(vv, d, v + i, rest);
    if constexpr (std::is_same_v<T, float>)
      if (copy != nullptr) store(pv, d, copy + i, rest);
  }
  if constexpr (!std::is_same_v<T, float>)
    if (copy != nullptr)
      std::transform(p, p + n, copy, [](T x) { return bfloat16_from(static_cast<float>(x)); });
}

void adamw_kernel(const KernelArgs& args) {
  const AdamWConstants c(args.attrs.as<AdamWAttrs>(), args.inputs[4], args.inputs[5]);
  visit_f32_f64(args.inputs[0].dtype(), "adamw", [&]<typename T>() {
    T* p = args.inputs[0].data<T>();
    T* m = args.inputs[1].data<T>();
    T* v = args.inputs[2].data<T>();
    const T* grad = args.inputs[3].data<T>();
    BFloat16* copy = args.inputs[6].defined() ? args.inputs[6].data<BFloat16>() : nullptr;
    args.context.parallel_for(args.inputs[0].numel(), kUpdateGrain,
                              [&](int64_t begin, int64_t end) {
                                update(p + begin, m + begin, v + begin, grad + begin,
                                       copy != nullptr ? copy + begin : nullptr, end - begin, c);
                              });
  });
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {

HWY_EXPORT(squared_norm_kernel);
HWY_EXPORT(adamw_kernel);

void squared_norm_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(squared_norm_kernel)(args); }
void adamw_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(adamw_kernel)(args); }

}  // namespace obelisk::ops
#endif  // HWY_ONCE
