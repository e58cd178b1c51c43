#include "parallel/models/gpt2.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/autograd/node.h"
#include "ops/autograd.h"
#include "tests/parallel/tiny_task.h"
#include "tests/support/expect_error.h"

namespace obelisk::parallel {
namespace {

int64_t count_parameters(const Gpt2Config& config) {
  const Gpt2 model(config);  // no memory is taken
  int64_t count = 0;
  for (const Parameter* parameter : model.parameters()) count += parameter->numel();
  EXPECT_EQ(Gpt2::count_parameters(config), static_cast<double>(count));
  return count;
}

TEST(Gpt2Test, HasThePublishedNumbersOfParameters) {
  Gpt2Config config{.vocabulary_size = 50257,
                    .context_length = 1024,
                    .num_layers = 12,
                    .num_heads = 12,
                    .width = 768};
  EXPECT_EQ(count_parameters(config), 124439808);
  config = {.vocabulary_size = 50257,
            .context_length = 1024,
            .num_layers = 48,
            .num_heads = 25,
            .width = 1600};
  EXPECT_EQ(count_parameters(config), 1557611200);
  // nanoGPT's character model: 4 x (12 D^2 + 2 D) + D + (65 + 64) D.
  config = {.vocabulary_size = 65,
            .context_length = 64,
            .num_layers = 4,
            .num_heads = 4,
            .width = 128,
            .bias = false};
  EXPECT_EQ(count_parameters(config), 4 * (12 * 128 * 128 + 2 * 128) + 128 + 129 * 128);
  config.tied_head = false;
  EXPECT_EQ(count_parameters(config), 4 * (12 * 128 * 128 + 2 * 128) + 128 + 129 * 128 + 65 * 128);
}

TEST(Gpt2Test, RefusesImpossibleSizes) {
  EXPECT_ERROR(Gpt2({.vocabulary_size = 65,
                     .context_length = 64,
                     .num_layers = 0,
                     .num_heads = 4,
                     .width = 128}),
               ShapeError, "gpt2: num_layers must be positive; got 0");
  EXPECT_ERROR(Gpt2({.vocabulary_size = 65,
                     .context_length = 64,
                     .num_layers = 4,
                     .num_heads = 3,
                     .width = 128}),
               ShapeError, "gpt2: num_heads must divide width; got 3 and 128");
}

class Gpt2Forward : public ::testing::Test {
 protected:
  Gpt2Forward() { parameters_.initialise(1); }
  Tensor tokens(int64_t batch, int64_t length, uint64_t seed) const {
    Tensor ids = empty({batch, length}, DType::I64);
    const Philox random(seed, 0, 0);
    for (int64_t i = 0; i < ids.numel(); ++i)
      ids.data<int64_t>()[i] = random.bits(static_cast<uint64_t>(i)) % 11;
    return ids;
  }
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
  Gpt2 model_{tiny_model(11)};
  FlatParameters parameters_{model_.parameters(), DType::F64};
};

TEST_F(Gpt2Forward, StartsNearUniform) {
  NoGradScope no_grad;
  const double loss = model_.loss_sum(tokens(4, 16, 1), tokens(4, 16, 2), Tensor()).item<double>();
  EXPECT_NEAR(loss / 64, std::log(11.0), 0.05);
}

TEST_F(Gpt2Forward, LaterTokensDoNotChangeEarlierPredictions) {
  NoGradScope no_grad;
  Tensor a = tokens(1, 10, 1), b = tokens(1, 16, 3);
  std::copy_n(a.data<int64_t>(), 10, b.data<int64_t>());
  Tensor targets = tokens(1, 16, 5);
  // Of the longer sequence only the first ten positions count.
  for (int64_t t = 10; t < 16; ++t) targets.data<int64_t>()[t] = -1;
  const Tensor head = targets.alias({1, 10}, {10, 1}, 0);
  EXPECT_NEAR(model_.loss_sum(a, head, Tensor()).item<double>(),
              model_.loss_sum(b, targets, Tensor()).item<double>(), 1e-12);
}

TEST_F(Gpt2Forward, SequencesOfABatchDoNotMix) {
  NoGradScope no_grad;
  const Tensor ids = tokens(3, 16, 1), targets = tokens(3, 16, 2);
  double sum = 0;
  for (int64_t b = 0; b < 3; ++b)
    sum += model_
               .loss_sum(ids.alias({1, 16}, {16, 1}, 16 * b),
                         targets.alias({1, 16}, {16, 1}, 16 * b), Tensor())
               .item<double>();
  EXPECT_NEAR(model_.loss_sum(ids, targets, Tensor()).item<double>(), sum, 1e-11);
}

TEST_F(Gpt2Forward, NextLogitsAgreeWithTheLoss) {
  NoGradScope no_grad;
  const Tensor ids = tokens(2, 7, 1);
  const Tensor logits = model_.next_logits(ids);
  ASSERT_EQ(logits.shape(), (Shape{2, 11}));
  Tensor targets = full({2, 7}, DType::I64, -1);
  targets.data<int64_t>()[6] = 3;
  const double* row = logits.data<double>();
  double sum = 0;
  for (int v = 0; v < 11; ++v) sum += std::exp(row[v]);
  EXPECT_NEAR(model_.loss_sum(ids, targets, Tensor()).item<double>(), std::log(sum) - row[3],
              1e-12);
}

TEST_F(Gpt2Forward, EveryParameterGetsItsGradient) {
  const Tensor ids = tokens(2, 16, 1), targets = tokens(2, 16, 2);
  ops::backward(model_.loss_sum(ids, targets, Tensor()));
  for (const Parameter* parameter : parameters_.parameters()) {
    // Central difference along one random direction.
    const Philox random(9, random_stream(parameter->path(), "direction"), 0);
    double* values = parameter->value().data<double>();
    const double* gradient = parameter->value().grad().data<double>();
    const int64_t n = parameter->numel();
    auto shifted = [&](double h) {
      NoGradScope no_grad;
      for (int64_t i = 0; i < n; ++i) values[i] += h * random.normal(static_cast<uint64_t>(i));
      const double loss = model_.loss_sum(ids, targets, Tensor()).item<double>();
      for (int64_t i = 0; i < n; ++i) values[i] -= h * random.normal(static_cast<uint64_t>(i));
      return loss;
    };
    const double h = 1e-6;
    double slope = 0, norm = 0;
    for (int64_t i = 0; i < n; ++i) {
      slope += gradient[i] * random.normal(static_cast<uint64_t>(i));
      norm += gradient[i] * gradient[i];
    }
    EXPECT_NEAR((shifted(h) - shifted(-h)) / (2 * h), slope, 1e-5 * std::sqrt(norm) + 1e-6)
        << parameter->path();
    // The bias of keys cancels in the softmax: its gradient, and only it, is zero.
    EXPECT_GT(norm, 0) << parameter->path();
  }
}

TEST_F(Gpt2Forward, SaysWhatDoesNotFit) {
  EXPECT_ERROR(
      model_.loss_sum(tokens(1, 17, 1), tokens(1, 17, 1), Tensor()), ShapeError,
      "gpt2: ids must be [B, T] with T at most context_length; got [1, 17], context_length 16");
  EXPECT_ERROR(model_.loss_sum(tokens(1, 16, 1), tokens(1, 15, 1), Tensor()), ShapeError,
               "gpt2: targets must have the shape of ids; got [1, 15] and [1, 16]");
  Tensor ids = tokens(1, 16, 1);
  ids.data<int64_t>()[5] = 11;
  EXPECT_ERROR(model_.loss_sum(ids, ids, Tensor()), ValueError,
               "embedding: ids must be in [0, 11); got 11 at position 5 (wte)");
}

TEST(PretrainTest, MicroBatchesChangeNothingButRounding) {
  ExecContext context;
  ExecScope scope(context);
  const ProcessMesh mesh({.dp = 1}, self_communicator());
  PretrainOptions options = tiny_options(DType::F64);
  const auto dropout = [](Gpt2Config& model) { model.dropout = 0.1; };
  const std::vector<double> whole = TinyTask(options, mesh, dropout).losses(5);
  for (int64_t size : {1, 3, 8}) {  // 3 leaves a short one
    options.micro_batch_size = size;
    const std::vector<double> cut = TinyTask(options, mesh, dropout).losses(5);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(cut[i], whole[i], 1e-11) << size;
  }
}

TEST(PretrainTest, ThreadsAndRepeatsAreBitwiseEqual) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    std::vector<std::vector<double>> curves;
    for (int threads : {1, 2, 3, 1}) {
      ExecContext context({.num_threads = threads});
      ExecScope scope(context);
      const ProcessMesh mesh({.dp = 1}, self_communicator());
      curves.push_back(TinyTask(tiny_options(dtype), mesh).losses(20));
    }
    for (const auto& curve : curves) EXPECT_EQ(curve, curves[0]) << to_string(dtype);
  }
}

class PretrainLearns : public ::testing::TestWithParam<DType> {};

TEST_P(PretrainLearns, AndSamplesItsText) {
  ExecContext context({.num_threads = 2});
  ExecScope scope(context);
  const ProcessMesh mesh({.dp = 1}, self_communicator());
  PretrainOptions options = tiny_options(GetParam());
  options.sample = {.tokens = 40, .temperature = 0.0, .prompt = "the"};
  const TinyTask tiny(options, mesh);
  const double before = tiny.task->validate().loss;
  tiny.losses(60);
  const ValidationRecord after = tiny.task->validate();
  EXPECT_LT(after.loss, 0.75 * before);
  EXPECT_GT(after.tokens, 0);
  const std::string sample = tiny.task->sample();
  EXPECT_EQ(sample.size(), 43u);
  EXPECT_TRUE(sample.starts_with("the"));
  EXPECT_EQ(sample, tiny.task->sample());  // same seed, same text
}

INSTANTIATE_TEST_SUITE_P(All, PretrainLearns, ::testing::Values(DType::F32, DType::BF16));

TEST(PretrainTest, RefusesPromptsAndBatchesThatCannotWork) {
  ExecContext context;
  ExecScope scope(context);
  const ProcessMesh mesh({.dp = 1}, self_communicator());
  PretrainOptions options = tiny_options(DType::F32);
  options.sample = {.tokens = 1, .prompt = ""};
  EXPECT_ERROR(TinyTask(options, mesh), ValueError,
               "sample.prompt: must not be empty; got ''; give at least one character");
  options = tiny_options(DType::F32);
  options.sequences = 0;
  EXPECT_ERROR(TinyTask(options, mesh), ShapeError,
               "pretrain: batch.sequences must be a positive multiple of dp; got 0 and 1");
  options = tiny_options(DType::F32);
  options.micro_batch_size = -1;
  EXPECT_ERROR(TinyTask(options, mesh), ShapeError,
               "pretrain: batch.micro_batch_size must not be negative; got -1");
}

// A gradient that is not finite must not touch the weights.
TEST(PretrainTest, SkipsUpdatesThatAreNotFinite) {
  ExecContext context;
  ExecScope scope(context);
  const ProcessMesh mesh({.dp = 1}, self_communicator());
  const TinyTask tiny(tiny_options(DType::F32), mesh);
  tiny.losses(2);
  const Tensor& values = tiny.task->parameters().values();
  values.data<float>()[3] = std::nanf("");
  const std::vector<float> before(values.data<float>(), values.data<float>() + values.numel());
  EXPECT_TRUE(tiny.task->step(2).skipped);
  EXPECT_EQ(0, std::memcmp(before.data(), values.data<float>(), before.size() * sizeof(float)));
}

// Losses and every gradient of three steps, and the peak of tensor memory.
struct Trained {
  std::vector<double> losses;
  std::vector<float> gradients;
  int64_t peak = 0;
};

Trained train(DType dtype, Recompute recompute, int threads) {
  ExecContext context({.num_threads = threads});
  ExecScope scope(context);
  const ProcessMesh mesh({.dp = 1}, self_communicator());
  PretrainOptions options = tiny_options(dtype);
  options.recompute = recompute;
  options.sequence_length = 64;
  options.micro_batch_size = 4;
  const TinyTask tiny(options, mesh, [](Gpt2Config& model) {
    model.dropout = 0.2;
    model.num_layers = 6;
    model.context_length = 64;
  });
  Trained trained;
  trained.losses = tiny.losses(3);
  const Tensor& gradients = tiny.task->parameters().gradients();
  trained.gradients.assign(gradients.data<float>(), gradients.data<float>() + gradients.numel());
  trained.peak = tiny.task->memory_bytes();
  return trained;
}

class Gpt2Recompute : public ::testing::TestWithParam<DType> {};

TEST_P(Gpt2Recompute, KeepsEveryBitAndSavesMemory) {
  const Trained none = train(GetParam(), Recompute::None, 2);
  const Trained selective = train(GetParam(), Recompute::Selective, 2);
  const Trained full = train(GetParam(), Recompute::Full, 1);
  EXPECT_EQ(none.losses, selective.losses);
  EXPECT_EQ(none.gradients, selective.gradients);
  EXPECT_EQ(none.losses, full.losses);
  EXPECT_EQ(none.gradients, full.gradients);
  // In bf16 the f32 state weighs more beside the activations.
  const bool bf16 = GetParam() == DType::BF16;
  EXPECT_LT(static_cast<double>(selective.peak),
            (bf16 ? 0.92 : 0.87) * static_cast<double>(none.peak));
  EXPECT_LT(static_cast<double>(full.peak), (bf16 ? 0.7 : 0.6) * static_cast<double>(none.peak));
}

INSTANTIATE_TEST_SUITE_P(All, Gpt2Recompute, ::testing::Values(DType::F32, DType::BF16));

}  // namespace
}  // namespace obelisk::parallel
