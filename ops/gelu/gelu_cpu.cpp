// Vector kernels of GELU. Both forms are x times a probability P(x); both compute the smaller of
// P(x) and 1 - P(x) from a = |x| with one exponential and one division, without branches and
// without cancellation in the tails.

#include "ops/gelu/gelu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gelu/gelu_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once a target.
#include <hwy/highway.h>

#include "ops/common/exp2-inl.h"
#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kInverseSqrtTwoPi = 0.3989422804014327;
constexpr double kSqrtTwoOverPi = 0.7978845608028654;
constexpr double kCubic = 0.044715;

// Elements below which a second thread costs more than it brings.
constexpr int64_t kGrain = 1 << 14;

// With z = a / sqrt(2) and t = k / (k + z), exp(z^2) erfc(z) / t is smooth on all of t in (0, 1]
// (Shepherd, Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2) erfc x, 1981). The
// polynomials are own Chebyshev fits of half of it, in 1 - 2t.
template <typename T>
struct NormalTail;
template <>
struct NormalTail<float> {
  static constexpr float kLimit = 14.0f;  // exp(-a^2 / 2) and with it the tail are 0 in f32
  static constexpr float kPole = 3.0 * 1.4142135623730951;  // k sqrt(2)
  static constexpr float kPolynomial[] = {                  // error 8e-10 before rounding
                                          -5.5601525673409924e-05f, -8.307438838528469e-05f,
                                          0.0005130998906679451f,   -0.00020283812773413956f,
                                          -0.004472819622606039f,   0.0199211947619915f,
                                          -0.051744431257247925f,   0.09837140887975693f,
                                          -0.14723241329193115f,    0.17900115251541138f};
};
template <>
struct NormalTail<double> {
  static constexpr double kLimit = 38.0;
  static constexpr double kPole = 3.5 * 1.4142135623730951;
  static constexpr double kPolynomial[] = {
      // error 3e-18 before rounding
      4.707266650955991e-10,   1.2909614230319486e-09,  -3.1099943563514795e-09,
      -1.1929096089843257e-08, 1.6599893103300335e-08,  7.864715491599245e-08,
      -1.1378039635463872e-07, -4.845762668307899e-07,  1.0348873233784777e-06,
      2.663884971834601e-06,   -1.0682443096126382e-05, -6.008880820905575e-06,
      0.00010207595518908187,  -0.00018647924168403775, -0.0004538643346372825,
      0.0037883742688117664,   -0.013188386662645662,   0.03224837452105842,
      -0.06217943238812672,    0.09915909237637778,     -0.13397138922387314,
      0.1552936556088943};
};

// P(x) and dP/dx.
template <class V>
struct Gate {
  V probability;
  V slope;
};

// |x|, cut off where all further results are the same, so that no infinity meets a 0 in here.
template <class D>
HWY_INLINE hn::Vec<D> magnitude(D d, hn::Vec<D> x) {
  return hn::Min(hn::Abs(x), hn::Set(d, NormalTail<hn::TFromD<D>>::kLimit));
}

template <GeluForm kForm, class D>
HWY_INLINE Gate<hn::Vec<D>> gate(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto one = set(1.0);
  const auto a = magnitude(d, x);
  const auto square = hn::Mul(a, a);
  const auto negative = hn::Lt(x, hn::Zero(d));
  if constexpr (kForm == GeluForm::Erf) {
    using Tail = NormalTail<T>;
    const auto bell = exp2(d, hn::Mul(square, set(-0.5 * kLog2E)));
    const auto t = hn::Div(set(Tail::kPole), hn::Add(a, set(Tail::kPole)));
    const auto scaled = polynomial(d, hn::NegMulAdd(set(2.0), t, one), Tail::kPolynomial);
    const auto tail = hn::Mul(hn::Mul(bell, t), scaled);
    return {hn::IfThenElse(negative, tail, hn::Sub(one, tail)),
            hn::Mul(bell, set(kInverseSqrtTwoPi))};
  } else {
    // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)).
    const auto inner = hn::MulAdd(square, set(kCubic), one);
    const auto decay = exp2(d, hn::Mul(hn::Mul(a, inner), set(-2.0 * kSqrtTwoOverPi * kLog2E)));
    const auto upper = hn::Div(one, hn::Add(one, decay));
    const auto lower = hn::Mul(decay, upper);
    const auto slope =
        hn::MulAdd(square, set(6.0 * kSqrtTwoOverPi * kCubic), set(2.0 * kSqrtTwoOverPi));
    return {hn::IfThenElse(negative, lower, upper), hn::Mul(hn::Mul(lower, upper), slope)};
  }
}

template <typename T, GeluForm kForm>
HWY_NOINLINE void forward_range(const T* x, T* y, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  map_unary(x, y, n, [d](auto v) HWY_ATTR { return hn::Mul(v, gate<kForm>(d, v).probability); });
}

template <typename T, GeluForm kForm>
HWY_NOINLINE void backward_range(const T* x, const T* dy, T* dx, int64_t n) {
  const hn::ScalableTag<Compute<T>> d;
  map_binary(x, dy, dx, n, [d](auto v, auto g) HWY_ATTR {
    const auto p = gate<kForm>(d, v);
    return hn::Mul(g, hn::MulAdd(v, p.slope, p.probability));
  });
}

template <typename T, GeluForm kForm>
void forward(const KernelArgs& args) {
  const T* x = args.inputs[0].data<T>();
  T* y = args.outputs[0].data<T>();
  args.context.parallel_for(args.inputs[0].numel(), kGrain, [&](int64_t begin, int64_t end) {
    forward_range<T, kForm>(x + begin, y + begin, end - begin);
  });
}

template <typename T, GeluForm kForm>
void backward(const KernelArgs& args) {
  const T* x = args.inputs[0].data<T>();
  const T* dy = args.inputs[1].data<T>();
  T* dx = args.outputs[0].data<T>();
  args.context.parallel_for(args.inputs[0].numel(), kGrain, [&](int64_t begin, int64_t end) {
    backward_range<T, kForm>(x + begin, dy + begin, dx + begin, end - begin);
  });
}

void forward_kernel(const KernelArgs& args) {
  const bool erf = args.attrs.as<GeluAttrs>().form == GeluForm::Erf;
  visit_float(args.inputs[0].dtype(), "gelu", [&]<typename T>() {
    erf ? forward<T, GeluForm::Erf>(args) : forward<T, GeluForm::Tanh>(args);
  });
}

void backward_kernel(const KernelArgs& args) {
  const bool erf = args.attrs.as<GeluAttrs>().form == GeluForm::Erf;
  visit_float(args.inputs[0].dtype(), "gelu_backward", [&]<typename T>() {
    erf ? backward<T, GeluForm::Erf>(args) : backward<T, GeluForm::Tanh>(args);
  });
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
HWY_EXPORT(forward_kernel);
HWY_EXPORT(backward_kernel);
void gelu_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(forward_kernel)(args); }
void gelu_backward_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(backward_kernel)(args); }
}  // namespace obelisk::ops
#endif
