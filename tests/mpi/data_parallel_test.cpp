// Collectives, and data-parallel training against one rank. Run under mpirun with 1, 2 and 4 ranks.
#include <gtest/gtest.h>

#include <numeric>

#include "parallel/comm/communicator.h"
#include "tests/parallel/tiny_task.h"
#include "tests/support/mpi_world.h"

namespace obelisk::parallel {
namespace {

class MpiTest : public ::testing::Test {
 protected:
  ExecContext context_;
  ExecScope scope_{context_};
  std::unique_ptr<Communicator> world_ = test_world();
  int rank_ = world_->rank();
  int size_ = world_->size();
};
using Collectives = MpiTest;
using DataParallel = MpiTest;

TEST_F(Collectives, WorldHasTheRanksThatWereStarted) { EXPECT_EQ(size_, expected_ranks()); }

TEST_F(Collectives, AllReduceSumsAndCompares) {
  const Tensor sum = full({3}, DType::F64, rank_ + 1.0);
  world_->all_reduce(sum);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sum.data<double>()[i], size_ * (size_ + 1) / 2.0);
  const Tensor largest = full({1}, DType::I64, rank_);
  world_->all_reduce(largest, ReduceKind::Max);
  EXPECT_EQ(largest.item<int64_t>(), size_ - 1);
  const Tensor smallest = full({1}, DType::F32, rank_ + 7);
  world_->all_reduce(smallest, ReduceKind::Min);
  EXPECT_EQ(smallest.item<float>(), 7.0f);
  if (size_ > 1) {
    EXPECT_THROW(world_->all_reduce(zeros({1}, DType::U8)), CommError);
  }
}

TEST_F(Collectives, BroadcastGatherAndBarrier) {
  const Tensor text = full({5}, DType::I64, rank_ == size_ - 1 ? 42 : 0);
  world_->broadcast(text, size_ - 1);
  EXPECT_EQ(text.data<int64_t>()[4], 42);
  EXPECT_THROW(world_->broadcast(text, size_), CommError);
  const Tensor part = full({2}, DType::F32, rank_);
  const Tensor gathered = empty({size_, 2}, DType::F32);
  world_->all_gather(part, gathered);
  for (int r = 0; r < size_; ++r) EXPECT_EQ(gathered.data<float>()[2 * r + 1], r);
  EXPECT_THROW(world_->all_gather(part, empty({size_ + 1, 2}, DType::F32)), CommError);
  world_->barrier();
}

TEST_F(Collectives, SplitMakesGroups) {
  const auto group = world_->split(rank_ % 2, -rank_);  // keys reverse the order
  const int expected = (size_ + 1 - rank_ % 2) / 2;
  EXPECT_EQ(group->size(), expected);
  EXPECT_EQ(group->rank(), expected - 1 - rank_ / 2);
}

TEST_F(Collectives, MeshMustMatchTheRanks) {
  try {
    ProcessMesh mesh({.dp = size_ + 1}, test_world());
    FAIL();
  } catch (const CommError& error) {
    EXPECT_EQ(std::string(error.what()),
              fmt::format("mesh: dp {} is {} ranks, {} were started; set mesh.dp: {} or use -n {}",
                          size_ + 1, size_ + 1, size_, size_, size_ + 1));
  }
}

// The whole batch on this rank alone, against its share with the all-reduce.
void expect_same_training(int size, DType dtype, double dropout, double tolerance) {
  PretrainOptions options = tiny_options(dtype);
  const auto adapt = [&](Gpt2Config& model) { model.dropout = dropout; };
  const ProcessMesh alone({.dp = 1}, self_communicator());
  const ProcessMesh together({.dp = size}, test_world());
  const TinyTask serial(options, alone, adapt), parallel(options, together, adapt);
  const std::vector<double> expected = serial.losses(10), actual = parallel.losses(10);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << "step " << i;
  EXPECT_LT(actual.back(), actual.front());
  EXPECT_NEAR(parallel.task->validate().loss, serial.task->validate().loss, tolerance);
}

TEST_F(DataParallel, LossesEqualOneRankInF64) { expect_same_training(size_, DType::F64, 0, 1e-10); }
TEST_F(DataParallel, LossesEqualOneRankInF32) { expect_same_training(size_, DType::F32, 0, 1e-5); }
// Gradients are f32 and differ by their additions' order; a weight that this rounds to the other
// neighbour is half a percent off.
TEST_F(DataParallel, LossesEqualOneRankInBf16) {
  expect_same_training(size_, DType::BF16, 0, 1e-3);
}
TEST_F(DataParallel, DropoutMasksDoNotDependOnRanks) {
  expect_same_training(size_, DType::F64, 0.2, 1e-10);
}

TEST_F(DataParallel, ARepeatIsBitwiseEqual) {
  const ProcessMesh mesh({.dp = size_}, test_world());
  const PretrainOptions options = tiny_options(DType::F32);
  EXPECT_EQ(TinyTask(options, mesh).losses(10), TinyTask(options, mesh).losses(10));
}

TEST_F(DataParallel, RanksHoldTheSameWeights) {
  const ProcessMesh mesh({.dp = size_}, test_world());
  const TinyTask tiny(tiny_options(DType::F32), mesh);
  tiny.losses(5);
  const Tensor& values = tiny.task->parameters().values();
  const Tensor all = empty({size_, values.numel()}, DType::F32);
  world_->all_gather(values, all);
  for (int r = 1; r < size_; ++r)
    EXPECT_EQ(0, std::memcmp(all.data<float>(), all.data<float>() + r * values.numel(),
                             static_cast<size_t>(values.numel()) * sizeof(float)));
}

TEST_F(DataParallel, FlagsOfAnyRankReachAll) {
  const ProcessMesh mesh({.dp = size_}, test_world());
  const TinyTask tiny(tiny_options(DType::F32), mesh);
  const uint32_t own = rank_ == size_ - 1 ? 5u : 0u;
  EXPECT_EQ(tiny.task->agree(own), 5u);
  EXPECT_EQ(tiny.task->agree(0), 0u);
}

}  // namespace
}  // namespace obelisk::parallel
