#include "framework/tensor/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace obelisk {
namespace {

// The known-answer vectors of Random123, from tests/golden/philox.json.
TEST(Philox, MatchesPublishedVectors) {
  const nlohmann::json golden = nlohmann::json::parse(std::ifstream("tests/golden/philox.json"));
  ASSERT_EQ(golden.at("vectors").size(), 3u);
  for (const auto& vector : golden.at("vectors")) {
    const auto counter = vector.at("counter").get<PhiloxBlock>();
    const auto key = vector.at("key").get<std::array<uint32_t, 2>>();
    EXPECT_EQ(philox4x32(counter, key), vector.at("output").get<PhiloxBlock>());
  }
}

TEST(Philox, StreamsStepsAndSeedsDiffer) {
  const uint64_t stream = random_stream("layers.0.attn", "dropout");
  EXPECT_NE(stream, random_stream("layers.1.attn", "dropout"));
  EXPECT_NE(stream, random_stream("layers.0.attn", "init"));
  EXPECT_NE(random_stream("a:b", "c"), random_stream("a", "c"));
  const Philox base(1, stream, 0);
  EXPECT_EQ(base.bits(5), Philox(1, stream, 0).bits(5));
  EXPECT_NE(base.bits(5), Philox(2, stream, 0).bits(5));
  EXPECT_NE(base.bits(5), Philox(1, stream, 1).bits(5));
  EXPECT_NE(base.bits(5), base.bits(6));
}

TEST(Philox, UniformsFillTheUnitInterval) {
  EXPECT_EQ(uniform_from_bits(0), 0.0f);
  EXPECT_LT(uniform_from_bits(0xFFFFFFFFu), 1.0f);
  const Philox random(3, random_stream("test", "uniform"), 0);
  constexpr int kCount = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double u = random.uniform(static_cast<uint64_t>(i));
    sum += u;
    squares += u * u;
  }
  // Five standard errors of the mean of u and of u^2.
  EXPECT_NEAR(sum / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kCount));
}

TEST(Philox, LogarithmIsAccurate) {
  for (float x = 1e-30f; x < 1e30f; x *= 1.37f)
    EXPECT_NEAR(portable_log(x), std::log(static_cast<double>(x)),
                2e-7 * std::max(1.0, std::abs(std::log(static_cast<double>(x)))))
        << x;
  EXPECT_EQ(portable_log(1.0f), 0.0f);
}

// normal_from_bits inverts the normal distribution: Phi(z) must give the uniform back.
TEST(Philox, NormalsInvertTheDistribution) {
  for (uint32_t k = 1; k < (1u << 24); k += 12347) {
    const double z = normal_from_bits(k << 8);
    const double p = (2.0 * k + 1) / (1 << 25);
    const double tail = std::min(p, 1 - p);
    EXPECT_NEAR(0.5 * std::erfc(-z / std::sqrt(2.0)), p, 4e-6 * tail + 1e-7) << k;
  }
  EXPECT_EQ(normal_from_bits(0), -normal_from_bits(0xFFFFFFFFu));
  EXPECT_LT(normal_from_bits(0xFFFFFFFFu), 5.42f);
}

TEST(Philox, NormalsHaveTheRightMoments) {
  const Philox random(3, random_stream("test", "normal"), 0);
  constexpr int kCount = 100000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < kCount; ++i) {
    const double z = random.normal(static_cast<uint64_t>(i));
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1.0, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourth / kCount, 3.0, 5 * std::sqrt(96.0 / kCount));
}

}  // namespace
}  // namespace obelisk
