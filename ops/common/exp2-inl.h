// Vector 2^x for the kernels whose inner loop is an exponential. Per-target header: see
// simd-inl.h.
#if defined(OBELISK_OPS_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OBELISK_OPS_EXP2_INL_H_
#undef OBELISK_OPS_EXP2_INL_H_
#else
#define OBELISK_OPS_EXP2_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Horner's rule; coefficients from the highest power down.
template <class D, size_t kTerms>
HWY_INLINE hn::Vec<D> polynomial(D d, hn::Vec<D> x, const hn::TFromD<D> (&coefficients)[kTerms]) {
  auto sum = hn::Set(d, coefficients[0]);
#pragma GCC unroll 32
  for (size_t i = 1; i < kTerms; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
  return sum;
}

// 2^x = 2^n * 2^f with n = round(x): the factor 2^n is built in the exponent bits, 2^f on
// [-1/2, 1/2] is a Chebyshev fit, and no range reduction is needed, which is why callers fold
// log2(e) into x rather than ask for e^x.
template <typename T>
struct Exp2Constants;
template <>
struct Exp2Constants<float> {
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa bits; the exponent
  // bias of 127 rides along.
  static constexpr float kRound = 12582912.0f + 127.0f;
  static constexpr float kSmallest = -126.0f;  // 2^x below is not a normal number: returned as 0
  static constexpr int kMantissaBits = 23;
  static constexpr float kPolynomial[] = {// relative error 2e-9 before rounding
                                          0.00015461444854736328f,
                                          0.0013400427997112274f,
                                          0.009618056938052177f,
                                          0.05550327152013779f,
                                          0.24022650718688965f,
                                          0.6931471824645996f,
                                          1.0f};
};
template <>
struct Exp2Constants<double> {
  static constexpr double kRound = 6755399441055744.0 + 1023.0;
  static constexpr double kSmallest = -1022.0;
  static constexpr int kMantissaBits = 52;
  static constexpr double kPolynomial[] = {
      // relative error 3e-18 before rounding
      4.4558179083360645e-10, 7.074194297288521e-09,  1.0178055087733941e-07,
      1.3215432535912375e-06, 1.5252733841556773e-05, 0.00015403530463724353,
      0.001333355814640647,   0.009618129107587256,   0.055504108664821625,
      0.24022650695910158,    0.6931471805599453,     1.0};
};

// 2^x to about 1 ulp. Needs x <= 127 (f32), 1023 (f64). Below the normal range, and for -inf: 0.
// NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp2(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using Constants = Exp2Constants<T>;
  const hn::RebindToSigned<D> di;
  const auto round = hn::Set(d, Constants::kRound);
  const auto shifted = hn::Add(x, round);
  const auto fraction = hn::Sub(x, hn::Sub(shifted, round));
  const auto power =
      hn::BitCast(d, hn::ShiftLeft<Constants::kMantissaBits>(hn::BitCast(di, shifted)));
  const auto value = hn::Mul(polynomial(d, fraction, Constants::kPolynomial), power);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, Constants::kSmallest)), value);
}

}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // OBELISK_OPS_EXP2_INL_H_
