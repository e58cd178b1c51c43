#include "parallel/tasks/memory_plan.h"

#include <gtest/gtest.h>

#include "tests/parallel/tiny_task.h"

namespace obelisk::parallel {
namespace {

struct Measured {
  double planned = 0, peak = 0;
};

// The plan without memory outside tensors, beside the peak of three real steps.
Measured measure(const Gpt2Config& model, const PretrainOptions& options) {
  ExecContext context({.num_threads = 2});
  ExecScope scope(context);
  const ProcessMesh mesh({.dp = 1}, self_communicator());
  const TinyTask tiny(options, mesh, [&](Gpt2Config& config) {
    const int64_t vocabulary_size = config.vocabulary_size;
    config = model;
    config.vocabulary_size = vocabulary_size;
  });
  tiny.losses(3);
  const MemoryPlan plan = plan_memory(tiny.task->model().config(), options, 1, 0);
  return {plan.state() + plan.activations, static_cast<double>(tiny.task->memory_bytes())};
}

TEST(MemoryPlan, IsALowerBoundNearTheMeasuredPeak) {
  Gpt2Config model{
      .context_length = 64, .num_layers = 4, .num_heads = 2, .width = 64, .dropout = 0.1};
  PretrainOptions options = tiny_options(DType::F32);
  options.sequence_length = 64;
  for (const bool bias : {true, false}) {
    for (const DType dtype : {DType::F32, DType::F64}) {
      for (const auto recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
        model.bias = bias;
        model.tied_head = bias;
        options.dtype = dtype;
        options.recompute = recompute;
        options.micro_batch_size = dtype == DType::F32 ? 2 : 0;
        const Measured measured = measure(model, options);
        SCOPED_TRACE(fmt::format("bias {}, {}, recompute {}", bias, to_string(dtype),
                                 static_cast<int>(recompute)));
        EXPECT_LE(measured.planned, measured.peak);
        EXPECT_GE(measured.planned, 0.7 * measured.peak);
      }
    }
  }
}

TEST(MemoryPlan, SurvivesAbsurdSizes) {
  Gpt2Config model{.vocabulary_size = 65,
                   .context_length = 2000000000,
                   .num_layers = 2000000000,
                   .num_heads = 1,
                   .width = 2000000000};
  PretrainOptions options = tiny_options(DType::F32);
  options.sequences = 2000000000;
  options.sequence_length = 2000000000;
  const MemoryPlan plan = plan_memory(model, options, 1, 100);
  EXPECT_GT(plan.state(), 1e29);
  EXPECT_GT(plan.activations, 1e29);
}

TEST(MemoryPlan, SharesTheBatchAmongRanks) {
  const Gpt2Config model = tiny_model(65);
  const PretrainOptions options = tiny_options(DType::F32);
  EXPECT_EQ(plan_memory(model, options, 4, 0).activations * 4,
            plan_memory(model, options, 1, 0).activations);
}

}  // namespace
}  // namespace obelisk::parallel
