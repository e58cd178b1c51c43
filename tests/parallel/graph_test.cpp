// A whole training step as one graph: the losses and gradients of eager execution, bit for bit.
#include <gtest/gtest.h>

#include <cstring>

#include "framework/graph/executor.h"
#include "framework/graph/tracer.h"
#include "framework/module/flat_parameters.h"
#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "parallel/models/gpt2.h"

namespace obelisk::parallel {
namespace {

struct Batch {
  Tensor ids, targets, random;
  std::vector<Tensor> inputs() const { return {ids, targets, random}; }
};

Batch make_batch(int64_t b, int64_t t, int64_t vocabulary, int64_t step) {
  std::vector<int64_t> ids(b * t), targets(b * t);
  for (int64_t i = 0; i < b * t; ++i) {
    ids[i] = (i * 7 + step * 3 + 1) % vocabulary;
    targets[i] = i % 5 == 4 ? -1 : (i * 11 + step) % vocabulary;
  }
  const int64_t random[] = {1234, step, 2 * step};
  return {from_values<int64_t>(ids, {b, t}), from_values<int64_t>(targets, {b, t}),
          from_values<int64_t>(random, {3})};
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const auto* data = static_cast<const std::byte*>(tensor.raw_data());
  return {data, data + static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype())};
}

class GptGraphTest : public ::testing::TestWithParam<std::tuple<DType, bool, Recompute>> {
 protected:
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

TEST_P(GptGraphTest, OneTraceServesEveryBatchAndLength) {
  const auto [dtype, tied, recompute] = GetParam();
  Gpt2 model({.vocabulary_size = 19,
              .context_length = 9,
              .num_layers = 2,
              .num_heads = 2,
              .width = 8,
              .dropout = 0.25,
              .tied_head = tied});
  model.set_recompute(recompute);
  const FlatParameters parameters(model.parameters(), dtype);
  parameters.initialise(5);
  const Tensor scale = full({}, sum_dtype(dtype), 0.125);
  const auto step = [&](std::span<const Tensor> inputs) -> TensorList {
    const Tensor loss = model.loss_sum(inputs[0], inputs[1], inputs[2]);
    ops::backward(ops::multiply(loss, scale));
    return {loss.detach()};
  };
  const TraceInput inputs[] = {{"ids", DType::I64, {"B", "T"}},
                               {"targets", DType::I64, {"B", "T"}},
                               {"random", DType::I64, {"3"}}};
  const Graph graph = trace(inputs, model.parameters(), step);
  Executor executor(graph);
  int64_t index = 0;
  for (const auto& [b, t] : {std::pair{3, 9}, {1, 1}, {2, 5}, {1, 7}, {4, 1}, {3, 9}}) {
    const Batch batch = make_batch(b, t, 19, ++index);
    parameters.zero_gradients();
    const Tensor loss = step(batch.inputs())[0];
    step(batch.inputs());  // gradients accumulate
    const auto expected = bytes_of(parameters.gradients());
    const auto expected_loss = bytes_of(loss);
    parameters.zero_gradients();
    for (int repeat = 0; repeat < 2; ++repeat)
      EXPECT_EQ(bytes_of(executor.run(batch.inputs())[0]), expected_loss) << b << " x " << t;
    EXPECT_EQ(bytes_of(parameters.gradients()), expected) << b << " x " << t;
    EXPECT_NE(expected, std::vector<std::byte>(expected.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GptGraphTest,
    ::testing::Combine(::testing::Values(DType::F32, DType::F64, DType::BF16), ::testing::Bool(),
                       ::testing::Values(Recompute::None, Recompute::Selective, Recompute::Full)));

}  // namespace
}  // namespace obelisk::parallel
