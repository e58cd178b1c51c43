// After the second step a training run takes no tensor memory and allocates nothing in our own
// frames: the loop, the console, the event log and the report included.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>

#include "framework/graph/executor.h"
#include "framework/graph/tracer.h"
#include "framework/train/console.h"
#include "framework/train/events.h"
#include "framework/train/loop.h"
#include "framework/train/report.h"
#include "ops/autograd.h"
#include "tests/allocation/malloc_counter.h"
#include "tests/parallel/tiny_task.h"

namespace obelisk::parallel {
namespace {

TEST(AllocationCounter, SeesOurAllocations) {
  start_counting_allocations();
  const auto block = std::make_unique<std::vector<int>>(1000);
  const std::string text(100, 'x');
  const AllocationCount count = stop_counting_allocations();
  EXPECT_EQ(count.ours, 3) << text.size() << block->size();
  EXPECT_EQ(count.places.size(), 3u);
}

// What a run tells, and the counting from the third step on.
class CountingSurface : public LoopObserver {
 public:
  explicit CountingSurface(const std::string& events_path, int64_t steps)
      : null_(open("/dev/null", O_WRONLY)),
        events_(events_path),
        console_({.fd = null_, .steps = steps, .log_every = 1}),
        report_(RunFacts{}) {}
  ~CountingSurface() override { close(null_); }

  void on_step(const StepRecord& record, bool) override {
    events_.step(record);
    console_.step(record);
    report_.step(record);
    if (record.step == 2) {
      tensor_before_ = ExecContext::current().allocator()->stats().num_system_allocations;
      start_counting_allocations();
    }
  }
  // The validation at the end is not part of a step.
  void on_validation(const ValidationRecord&) override {}
  int64_t tensor_before() const { return tensor_before_; }

 private:
  int null_;
  EventLog events_;
  Console console_;
  RunReport report_;
  int64_t tensor_before_ = 0;
};

// Runs the loop; counting ends with the last step.
class StopAtLastStep : public LoopObserver {
 public:
  explicit StopAtLastStep(int64_t steps) : steps_(steps) {}
  void on_step(const StepRecord& record, bool) override {
    if (record.step != steps_) return;
    count = stop_counting_allocations();
    tensor_after = ExecContext::current().allocator()->stats().num_system_allocations;
  }
  void on_validation(const ValidationRecord&) override {}
  AllocationCount count;
  int64_t tensor_after = 0;

 private:
  int64_t steps_;
};

void expect_quiet(DType dtype, int64_t micro_batch_size, double dropout,
                  Recompute recompute = Recompute::None) {
  ExecContext context({.num_threads = 2});
  ExecScope scope(context);
  const ProcessMesh mesh({.dp = 1}, self_communicator());
  PretrainOptions options = tiny_options(dtype);
  options.micro_batch_size = micro_batch_size;
  options.recompute = recompute;
  const TinyTask tiny(options, mesh, [&](Gpt2Config& model) { model.dropout = dropout; });
  const std::string path =
      (std::filesystem::temp_directory_path() / ("events_" + std::to_string(getpid()))).string();
  constexpr int64_t kSteps = 12;
  CountingSurface surface(path, kSteps);
  StopAtLastStep stop(kSteps);
  RunResult result;
  run_training(*tiny.task, {.steps = kSteps}, {&surface, &stop}, result);
  std::filesystem::remove(path);
  EXPECT_EQ(stop.tensor_after, surface.tensor_before()) << "tensor memory was taken after step 2";
  std::string places;
  for (const std::string& place : stop.count.places) places += place + "\n";
  EXPECT_EQ(stop.count.ours, 0) << places;
}

TEST(NoAllocation, InF32) { expect_quiet(DType::F32, 0, 0.0); }
TEST(NoAllocation, InF64) { expect_quiet(DType::F64, 0, 0.0); }
TEST(NoAllocation, InBf16) { expect_quiet(DType::BF16, 2, 0.1); }
TEST(NoAllocation, WithMicroBatchesAndDropout) { expect_quiet(DType::F32, 2, 0.1); }
TEST(NoAllocation, WithRecompute) {
  expect_quiet(DType::F32, 2, 0.1, Recompute::Selective);
  expect_quiet(DType::F32, 2, 0.1, Recompute::Full);
}

// A traced training step, at two sizes: each is planned at its first run, and quiet from its third.
TEST(NoAllocation, OfGraphsFromTheThirdRunOfABinding) {
  ExecContext context({.num_threads = 2});
  ExecScope scope(context);
  const Gpt2 model({.vocabulary_size = 19,
                    .context_length = 9,
                    .num_layers = 2,
                    .num_heads = 2,
                    .width = 8,
                    .dropout = 0.25});
  const FlatParameters parameters(model.parameters(), DType::F32);
  parameters.initialise(5);
  const TraceInput inputs[] = {{"ids", DType::I64, {"B", "T"}},
                               {"targets", DType::I64, {"B", "T"}},
                               {"random", DType::I64, {"3"}}};
  const Graph graph =
      trace(inputs, model.parameters(), [&](std::span<const Tensor> traced) -> TensorList {
        const Tensor loss = model.loss_sum(traced[0], traced[1], traced[2]);
        ops::backward(loss);
        return {loss.detach()};
      });
  Executor executor(graph);
  const Tensor random = zeros({3}, DType::I64);
  const Tensor large = zeros({3, 9}, DType::I64), small = zeros({1, 1}, DType::I64);
  const auto run_both = [&] {
    executor.run(std::array{large, large, random});
    executor.run(std::array{small, small, random});
  };
  run_both();
  run_both();
  const int64_t before = context.allocator()->stats().num_system_allocations;
  start_counting_allocations();
  run_both();
  const AllocationCount count = stop_counting_allocations();
  std::string places;
  for (const std::string& place : count.places) places += place + "\n";
  EXPECT_EQ(count.ours, 0) << places;
  EXPECT_EQ(context.allocator()->stats().num_system_allocations, before);
}

}  // namespace
}  // namespace obelisk::parallel
