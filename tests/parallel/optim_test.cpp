#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "framework/tensor/philox.h"
#include "parallel/optim/adamw.h"

namespace obelisk::parallel {
namespace {

TEST(ScheduleTest, WarmsUpDecaysAndStays) {
  const Schedule cosine{.kind = ScheduleKind::Cosine,
                        .peak_lr = 1e-3,
                        .min_lr = 1e-4,
                        .warmup_steps = 100,
                        .decay_steps = 2000};
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 0), 1e-3 / 101);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 99), 1e-3 * 100 / 101);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 100), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 1050), 0.5 * (1e-3 + 1e-4));
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 2000), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 5000), 1e-4);
  const Schedule constant{.kind = ScheduleKind::Constant, .peak_lr = 2e-3, .warmup_steps = 1};
  EXPECT_DOUBLE_EQ(learning_rate(constant, 0), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 1), 2e-3);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 1000), 2e-3);
}

TEST(ScheduleTest, NeedsNoRoomToDecay) {
  const Schedule schedule{.peak_lr = 1.0, .min_lr = 0.5, .warmup_steps = 3, .decay_steps = 3};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 0.5);
}

// Two parameters, one that decays and one that does not, three steps, against the formula written
// out.
TEST(AdamWTest, FollowsTheFormulaOnFlatBuffers) {
  ExecContext context;
  ExecScope scope(context);
  Module root("");
  Parameter matrix(root, "matrix", {3, 5}, Initial::normal(0.5));
  Parameter bias(root, "bias", {7}, Initial::ones());
  const FlatParameters parameters(root.parameters(), DType::F64);
  parameters.initialise(3);
  const AdamWOptions options{
      .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .grad_clip_norm = 1.0};
  AdamW optimizer(parameters, options);

  std::vector<double> p, m, v;
  for (const Parameter* parameter : parameters.parameters())
    for (int64_t i = 0; i < parameter->numel(); ++i)
      p.push_back(parameter->value().data<double>()[i]);
  m.assign(p.size(), 0.0);
  v.assign(p.size(), 0.0);
  const Philox random(5, random_stream("test", "gradient"), 0);
  for (int64_t t = 1; t <= 3; ++t) {
    std::vector<double> g(p.size());
    double norm_sq = 0;
    size_t k = 0;
    for (const Parameter* parameter : parameters.parameters())
      for (int64_t i = 0; i < parameter->numel(); ++i, ++k) {
        g[k] = random.normal(static_cast<uint64_t>(100 * t) + k);
        parameter->value().grad().data<double>()[i] = g[k];
        norm_sq += g[k] * g[k];
      }
    EXPECT_NEAR(optimizer.gradient_norm(), std::sqrt(norm_sq), 1e-12);
    const double lr = 0.01 * static_cast<double>(t);
    optimizer.step(lr);
    const double clip = std::min(1.0, 1.0 / (std::sqrt(norm_sq) + 1e-6));
    for (k = 0; k < p.size(); ++k) {
      const double decay = k < 15 ? 0.1 : 0.0;
      p[k] *= 1 - lr * decay;
      m[k] = 0.9 * m[k] + 0.1 * g[k] * clip;
      v[k] = 0.99 * v[k] + 0.01 * g[k] * clip * g[k] * clip;
      const double mean = m[k] / (1 - std::pow(0.9, t));
      const double deviation = std::sqrt(v[k] / (1 - std::pow(0.99, t)));
      p[k] -= lr * mean / (deviation + 1e-8);
    }
    k = 0;
    for (const Parameter* parameter : parameters.parameters())
      for (int64_t i = 0; i < parameter->numel(); ++i, ++k)
        EXPECT_NEAR(parameter->value().data<double>()[i], p[k], 1e-13) << parameter->path() << i;
  }
  EXPECT_EQ(optimizer.steps_done(), 3);
}

TEST(FlatParametersTest, LaysOutDecayedFirstAndAligned) {
  ExecContext context;
  ExecScope scope(context);
  Module root("net");
  Parameter bias(root, "bias", {7}, Initial::ones());
  Module child(root, "child");
  Parameter matrix(child, "weight", {3, 5}, Initial::normal(0.5));
  const FlatParameters parameters(root.parameters(), DType::F32);
  parameters.initialise(3);
  EXPECT_EQ(parameters.num_parameters(), 22);
  EXPECT_EQ(parameters.decayed_size(), 32);
  EXPECT_EQ(parameters.size(), 64);
  EXPECT_EQ(matrix.path(), "net.child.weight");
  EXPECT_EQ(matrix.value().data<float>(), parameters.values().data<float>());
  EXPECT_EQ(bias.value().data<float>(), parameters.values().data<float>() + 32);
  EXPECT_EQ(bias.value().data<float>()[6], 1.0f);
  EXPECT_EQ(parameters.values().data<float>()[31], 0.0f);  // the gap
  EXPECT_TRUE(matrix.value().requires_grad());
  matrix.value().grad().data<float>()[4] = 3;
  EXPECT_EQ(parameters.gradients().data<float>()[4], 3.0f);
  parameters.zero_gradients();
  EXPECT_EQ(parameters.gradients().data<float>()[4], 0.0f);
  // The same numbers in f64, whatever the layout.
  const float first = matrix.value().data<float>()[0];
  const FlatParameters wide(child.parameters(), DType::F64);
  wide.initialise(3);
  EXPECT_EQ(matrix.value().data<double>()[0], first);
  EXPECT_EQ(wide.masters().raw_data(), wide.values().raw_data());
}

TEST(FlatParametersTest, KeepsF32MastersAndGradientsOfBf16Values) {
  ExecContext context;
  ExecScope scope(context);
  Module root("net");
  Parameter matrix(root, "weight", {3, 5}, Initial::normal(0.5));
  Parameter bias(root, "bias", {40}, Initial::ones());
  const FlatParameters wide(root.parameters(), DType::F32);
  wide.initialise(3);
  const FlatParameters parameters(root.parameters(), DType::BF16);
  parameters.initialise(3);
  EXPECT_EQ(parameters.decayed_size(), 32);
  EXPECT_EQ(parameters.masters().dtype(), DType::F32);
  EXPECT_EQ(parameters.gradients().dtype(), DType::F32);
  EXPECT_EQ(matrix.value().grad().dtype(), DType::F32);
  const float* masters = parameters.masters().data<float>();
  EXPECT_EQ(0, std::memcmp(masters, wide.masters().data<float>(), 72 * sizeof(float)));
  const auto expect_rounded = [&] {
    for (int64_t i = 0; i < parameters.size(); ++i)
      EXPECT_EQ(parameters.values().data<BFloat16>()[i].bits, bfloat16_from(masters[i]).bits) << i;
  };
  expect_rounded();
  EXPECT_EQ(bias.value().data<BFloat16>()[39].bits, bfloat16_from(1.0f).bits);
  // Updates far below the distance of bf16 neighbours add up in the masters.
  AdamW optimizer(parameters, {.weight_decay = 0, .grad_clip_norm = 0});
  for (int step = 0; step < 100; ++step) {
    std::fill_n(bias.value().grad().data<float>(), 40, 1.0f);
    optimizer.gradient_norm();
    optimizer.step(1e-4);
  }
  EXPECT_NEAR(masters[32], 0.99, 1e-5);
  expect_rounded();
  parameters.masters().data<float>()[3] = 0.3f;
  parameters.round_masters();
  expect_rounded();
}

}  // namespace
}  // namespace obelisk::parallel
