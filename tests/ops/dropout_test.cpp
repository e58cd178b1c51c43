#include "ops/dropout/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "ops/layout/layout.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

constexpr uint64_t kStream = random_stream("layers.0", "dropout");

class Dropout : public ::testing::Test {
 protected:
  static Tensor state(int64_t seed, int64_t step, int64_t first_sample) {
    const int64_t values[] = {seed, step, first_sample};
    return from_values<int64_t>(std::span<const int64_t>(values), {3});
  }
  ExecContext context_{ExecOptions{}};
  ExecScope scope_{context_};
};

bool same_bits(const Tensor& a, const float* b) {
  return std::memcmp(a.data<float>(), b, static_cast<size_t>(a.numel()) * sizeof(float)) == 0;
}

// The vector generator is the one of framework/tensor/philox.h, for counters of more than 32 bits
// too.
TEST_F(Dropout, DrawsAreThoseOfPhilox) {
  for (int64_t first_sample : {int64_t{0}, int64_t{3}, (int64_t{1} << 33) + 5}) {
    const Tensor x = full({5, 83}, DType::F32, 1);
    const Tensor y = ops::dropout(x, state(-9, int64_t{1} << 40, first_sample), 0.375, kStream);
    const Philox random(static_cast<uint64_t>(-9), kStream, uint64_t{1} << 40);
    for (uint64_t i = 0; i < 5 * 83; ++i) {
      const bool kept = random.uniform(static_cast<uint64_t>(first_sample) * 83 + i) >= 0.375;
      ASSERT_EQ(y.data<float>()[i], kept ? 1.6f : 0.0f) << first_sample << " element " << i;
    }
  }
}

TEST_F(Dropout, RateAndMean) {
  constexpr int64_t kCount = 1'000'000;
  const Tensor x = full({kCount}, DType::F32, 1);
  for (double p : {0.1, 0.5, 0.9}) {
    const Tensor y = ops::dropout(x, state(1, 2, 0), p, kStream);
    int64_t dropped = 0;
    for (int64_t i = 0; i < kCount; ++i) dropped += y.data<float>()[i] == 0;
    // Five standard deviations of a binomial rate.
    const double slack = 5 * std::sqrt(p * (1 - p) / kCount);
    EXPECT_NEAR(static_cast<double>(dropped) / kCount, p, slack);
    EXPECT_NEAR(ops::mean(y).item<float>(), 1.0, slack / (1 - p));
  }
}

TEST_F(Dropout, SeedStepAndStreamChangeTheMask) {
  const Tensor x = full({4096}, DType::F32, 1);
  const Tensor y = ops::dropout(x, state(1, 2, 0), 0.5, kStream);
  EXPECT_TRUE(same_bits(y, ops::dropout(x, state(1, 2, 0), 0.5, kStream).data<float>()));
  for (const Tensor& other : {ops::dropout(x, state(2, 2, 0), 0.5, kStream),
                              ops::dropout(x, state(1, 3, 0), 0.5, kStream),
                              ops::dropout(x, state(1, 2, 0), 0.5, kStream + 1)}) {
    int64_t equal = 0;
    for (int i = 0; i < 4096; ++i) equal += y.data<float>()[i] == other.data<float>()[i];
    EXPECT_NEAR(static_cast<double>(equal), 2048, 5 * 32);
  }
}

// A batch cut in two parts along dim 0, each told where it begins, has the mask of the whole.
TEST_F(Dropout, PartsOfABatchEqualTheWhole) {
  const Tensor x = full({6, 5, 7}, DType::F32, 3);
  const Tensor whole = ops::dropout(x, state(5, 6, 100), 0.3, kStream);
  for (int64_t cut = 1; cut < 6; ++cut) {
    const Tensor first = ops::dropout(ops::slice(x, 0, 0, cut), state(5, 6, 100), 0.3, kStream);
    const Tensor second =
        ops::dropout(ops::slice(x, 0, cut, 6), state(5, 6, 100 + cut), 0.3, kStream);
    EXPECT_TRUE(same_bits(first, whole.data<float>())) << cut;
    EXPECT_TRUE(same_bits(second, whole.data<float>() + cut * 35)) << cut;
  }
}

TEST_F(Dropout, SameBitsForAnyNumberOfThreads) {
  const Tensor x = full({3, 33'333}, DType::F32, 1);
  const Tensor one = ops::dropout(x, state(5, 6, 1), 0.5, kStream);
  for (int threads : {2, 3, 5}) {
    ExecOptions options;
    options.num_threads = threads;
    ExecContext context(options);
    ExecScope scope(context);
    EXPECT_TRUE(same_bits(ops::dropout(x, state(5, 6, 1), 0.5, kStream), one.data<float>()))
        << threads;
  }
}

TEST_F(Dropout, BackwardDrawsTheSameMask) {
  Tensor x = full({7, 9}, DType::F32, 1);
  x.set_requires_grad(true);
  const Tensor y = ops::dropout(x, state(5, 6, 1), 0.5, kStream);
  ops::backward(ops::sum(y));
  EXPECT_TRUE(same_bits(x.grad(), y.data<float>()));
}

// Dropped is 0 whatever stood there.
TEST_F(Dropout, InfinityAndNanAreDropped) {
  const Tensor x = full({64}, DType::F64, std::nan(""));
  const Tensor y = ops::dropout(x, state(5, 6, 1), 0.5, kStream);
  int zeros = 0;
  for (int i = 0; i < 64; ++i) {
    zeros += y.data<double>()[i] == 0;
    EXPECT_TRUE(y.data<double>()[i] == 0 || std::isnan(y.data<double>()[i]));
  }
  EXPECT_GT(zeros, 10);
  EXPECT_LT(zeros, 54);
}

TEST_F(Dropout, ZeroProbabilityIsTheIdentity) {
  const Tensor x = full({3}, DType::F32, 1);
  EXPECT_EQ(ops::dropout(x, state(1, 2, 3), 0.0, kStream).storage(), x.storage());
}

TEST_F(Dropout, Messages) {
  const Tensor x = zeros({2}, DType::F32);
  EXPECT_ERROR(ops::dropout(x, state(1, 2, 3), 1.0, 5), ShapeError,
               "dropout: p must be in [0, 1); got x f32 [2], rng_state i64 [3], {p=1, stream=5}");
  EXPECT_ERROR(ops::dropout(x, x, 0.5, 5), ShapeError,
               "dropout: rng_state must be i64 [3]; got x f32 [2], rng_state f32 [2], {p=0.5, "
               "stream=5}");
}

}  // namespace
}  // namespace obelisk
