#include "ops/sample/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/tensor/philox.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class Sample : public ::testing::Test {
 protected:
  static Tensor state(int64_t seed, int64_t step, int64_t first_sample) {
    const int64_t values[] = {seed, step, first_sample};
    return from_values<int64_t>(std::span<const int64_t>(values), {3});
  }
  // The same logits in every row.
  static Tensor rows(const std::vector<double>& logits, int64_t count) {
    const auto width = static_cast<int64_t>(logits.size());
    Tensor x = empty({count, width}, DType::F64);
    for (int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = logits[i % width];
    return x;
  }
  static std::vector<double> frequencies(const Tensor& ids, size_t vocabulary) {
    std::vector<double> counts(vocabulary, 0.0);
    for (int64_t i = 0; i < ids.numel(); ++i)
      counts.at(ids.data<int64_t>()[i]) += 1.0 / static_cast<double>(ids.numel());
    return counts;
  }
  ExecContext context_{ExecOptions{}};
  ExecScope scope_{context_};
};

TEST_F(Sample, FrequenciesFollowTheSoftmax) {
  constexpr int64_t kRows = 100'000;
  const std::vector<double> logits{0.5, -1, 2, -kInf, 1};
  for (double temperature : {0.5, 1.0, 3.0}) {
    const Tensor ids =
        ops::sample(rows(logits, kRows), state(1, 2, 0), {.temperature = temperature});
    const std::vector<double> found = frequencies(ids, logits.size());
    double total = 0;
    for (double x : logits) total += std::exp(x / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double p = std::exp(logits[i] / temperature) / total;
      EXPECT_NEAR(found[i], p, 5 * std::sqrt(p * (1 - p) / kRows)) << temperature << " id " << i;
    }
    EXPECT_EQ(found[3], 0);
  }
}

TEST_F(Sample, TopKKeepsTheLargest) {
  constexpr int64_t kRows = 20'000;
  const std::vector<double> logits{1, 3, 2, 3, 2, 0};
  const std::vector<double> found =
      frequencies(ops::sample(rows(logits, kRows), state(1, 2, 0), {.top_k = 3}), logits.size());
  // Of the two 2s the first comes before the second.
  const double total = 2 * std::exp(3.0) + std::exp(2.0);
  for (size_t i : {size_t{0}, size_t{4}, size_t{5}}) EXPECT_EQ(found[i], 0) << i;
  EXPECT_NEAR(found[1], std::exp(3.0) / total, 0.02);
  EXPECT_NEAR(found[2], std::exp(2.0) / total, 0.02);
  EXPECT_NEAR(found[3], std::exp(3.0) / total, 0.02);
}

TEST_F(Sample, TemperatureZeroTakesTheLargest) {
  const Tensor ids =
      ops::sample(rows({1, 5, -kInf, 5, 2}, 3), state(1, 2, 0), {.temperature = 0, .top_k = 2});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ids.data<int64_t>()[i], 1);
}

// The uniform number of a row belongs to its sample index, however the batch is cut.
TEST_F(Sample, RowsDrawByTheirSampleIndex) {
  const Tensor logits = rows({0, 0.1, 0.2, 0.3, 0, 0.5, 0.1}, 40);
  const ops::SampleAttrs attrs{.stream = 99};
  const Tensor whole = ops::sample(logits, state(1, 2, 1000), attrs);
  const Tensor part =
      ops::sample(rows({0, 0.1, 0.2, 0.3, 0, 0.5, 0.1}, 15), state(1, 2, 1025), attrs);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(part.data<int64_t>()[i], whole.data<int64_t>()[25 + i]);
}

// Ids in order share [0, 1): the id drawn is where the row's uniform number falls.
TEST_F(Sample, InvertsTheCumulativeDistribution) {
  constexpr int64_t kRows = 1000;
  const Tensor ids = ops::sample(rows({0, 0, 0, 0}, kRows), state(3, 4, 0), {.stream = 5});
  const Philox random(3, 5, 4);
  for (int64_t row = 0; row < kRows; ++row)
    EXPECT_EQ(ids.data<int64_t>()[row], static_cast<int64_t>(random.uniform(row) * 4)) << row;
}

TEST_F(Sample, NeverDrawsAnIdWithoutProbability) {
  const Tensor ids = ops::sample(rows({-kInf, -kInf, 0, -5000, -kInf}, 5000), state(1, 2, 0), {});
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(ids.data<int64_t>()[i], 2);
}

TEST_F(Sample, SurvivesExtremeLogitsAndTemperatures) {
  const Tensor x = rows({1e30, -1e30, 1e30}, 200);
  for (double temperature : {1e-300, 1.0, 1e300}) {
    const Tensor ids = ops::sample(x, state(1, 2, 0), {.temperature = temperature});
    if (temperature >= 1e20) continue;
    for (int i = 0; i < 200; ++i) EXPECT_NE(ids.data<int64_t>()[i], 1);
  }
}

TEST_F(Sample, Messages) {
  Tensor x = zeros({5, 7}, DType::F32);
  x.data<float>()[3 * 7 + 5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_ERROR(ops::sample(x, state(1, 2, 0), {}), ValueError,
               "sample: logits must not be NaN or +inf; got nan at row 3, id 5");
  x.data<float>()[3 * 7 + 5] = std::numeric_limits<float>::infinity();
  EXPECT_ERROR(ops::sample(x, state(1, 2, 0), {.temperature = 0}), ValueError,
               "sample: logits must not be NaN or +inf; got inf at row 3, id 5");
  EXPECT_ERROR(ops::sample(rows({-kInf, -kInf}, 2), state(1, 2, 0), {}), ValueError,
               "sample: a row must have a finite logit; row 0 has none");
  EXPECT_ERROR(ops::sample(zeros({7}, DType::F32), state(1, 2, 0), {}), ShapeError,
               "sample: logits must be [N, V]; got logits f32 [7], rng_state i64 [3], "
               "{temperature=1, top_k=0, stream=0}");
  EXPECT_ERROR(ops::sample(zeros({2, 0}, DType::F32), state(1, 2, 0), {}), ShapeError,
               "sample: the vocabulary must not be empty; got logits f32 [2, 0], rng_state i64 "
               "[3], {temperature=1, top_k=0, stream=0}");
  EXPECT_ERROR(ops::sample(x, x, {}), ShapeError,
               "sample: rng_state must be i64 [3]; got logits f32 [5, 7], rng_state f32 [5, 7], "
               "{temperature=1, top_k=0, stream=0}");
  EXPECT_ERROR(ops::sample(x, state(1, 2, 0), {.temperature = -1}), ShapeError,
               "sample: temperature must be finite and not negative; got logits f32 [5, 7], "
               "rng_state i64 [3], {temperature=-1, top_k=0, stream=0}");
  EXPECT_ERROR(ops::sample(x, state(1, 2, 0), {.top_k = -1}), ShapeError,
               "sample: top_k must not be negative; got logits f32 [5, 7], rng_state i64 [3], "
               "{temperature=1, top_k=-1, stream=0}");
}

}  // namespace
}  // namespace obelisk
