#include "framework/tensor/tensor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "framework/base/scope.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class TensorTest : public ::testing::Test {
 protected:
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

TEST_F(TensorTest, ShapesCountAndPrint) {
  EXPECT_EQ(num_elements({16, 128, 512}), 16 * 128 * 512);
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({3, 0, 2}), 0);
  EXPECT_EQ(to_string(Shape{16, 128, 512}), "[16, 128, 512]");
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_ERROR(num_elements({2, -1}), ShapeError, "shape: dims must not be negative; got [2, -1]");
  EXPECT_ERROR(num_elements({int64_t{1} << 40, int64_t{1} << 40}), ShapeError,
               "shape: number of elements must fit 63 bits; got [1099511627776, 1099511627776]");
  EXPECT_ERROR((Shape{1, 1, 1, 1, 1, 1, 1}), ShapeError, "shape: at most 6 dims; got 7");
}

TEST_F(TensorTest, HoldsValues) {
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const Tensor x = from_values<float>(numbers, {2, 3});
  EXPECT_EQ(x.dim(0), 2);
  EXPECT_EQ(x.dim(-1), 3);
  EXPECT_EQ(x.data<float>()[5], 6);
  EXPECT_EQ(full({}, DType::F64, 2.5).item<double>(), 2.5);
  EXPECT_EQ(zeros({3}, DType::I64).data<int64_t>()[2], 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.raw_data()) % 64, 0u);
  EXPECT_ERROR(x.data<double>(), Bug, "bug: tensor of dtype f32 read as f64");
  EXPECT_ERROR(x.dim(2), ShapeError, "dim: must be in [-2, 2); got 2 of shape [2, 3]");
  EXPECT_ERROR(x.item<float>(), ShapeError, "item: tensor must have one element; got [2, 3]");
  EXPECT_ERROR(from_values<float>(numbers, {7}), ShapeError,
               "from_values: number of values must match the shape; got 6 for [7]");
  EXPECT_EQ(full({2}, DType::BF16, 1.00390625).data<BFloat16>()[1].bits, 0x3F80);  // a tie: 1
  EXPECT_ERROR(full({2}, DType::F16, 1.0), ShapeError,
               "full: dtype must be f32, bf16 or f64; got f16; cast first");
}

TEST_F(TensorTest, ViewsShareBytes) {
  const Tensor x = zeros({4, 6}, DType::F32);
  const Tensor column = x.alias({4, 2}, {6, 1}, 2);
  column.data<float>()[6] = 9;
  EXPECT_EQ(x.data<float>()[8], 9);
  EXPECT_FALSE(column.is_contiguous());
  EXPECT_TRUE(
      x.alias({1, 6}, {99, 1}, 6).is_contiguous());  // strides of dims of size 1 do not matter
  EXPECT_TRUE(x.alias({0, 2}, {7, 3}, 0).is_contiguous());  // nor those of an empty tensor
  EXPECT_EQ(column.storage(), x.storage());
}

TEST_F(TensorTest, MetadataKeepsNoBytes) {
  const Tensor x = empty({2, 3}, DType::F32).metadata();
  EXPECT_FALSE(x.has_data());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_ERROR(x.data<float>(), Bug, "bug: tensor [2, 3] keeps no data");
  EXPECT_ERROR(Tensor().shape(), Bug, "bug: an undefined tensor was used");
}

TEST_F(TensorTest, GradientRules) {
  Tensor ids = zeros({2}, DType::I64);
  EXPECT_ERROR(ids.set_requires_grad(true), ShapeError,
               "requires_grad: dtype must be a float; got i64");
  Tensor x = zeros({2}, DType::F32);
  EXPECT_ERROR(x.set_grad(zeros({3}, DType::F32)), ShapeError,
               "set_grad: shape must equal the tensor's; got [3], tensor [2]");
}

TEST(Context, NeedsAScope) {
  EXPECT_ERROR(ExecContext::current(), Bug,
               "bug: no execution context on this thread; open an ExecScope first");
  EXPECT_ERROR(ExecContext({.num_threads = 0}), DeviceError,
               "context: number of threads must be at least 1; got 0; set threads in the recipe");
  ExecContext outer, inner;
  ExecScope outer_scope(outer);
  {
    ExecScope inner_scope(inner);
    EXPECT_EQ(&ExecContext::current(), &inner);
  }
  EXPECT_EQ(&ExecContext::current(), &outer);
}

TEST(Context, ParallelForCoversEveryItemOnce) {
  for (int threads : {1, 2, 3}) {
    ExecContext context({.num_threads = threads});
    for (int64_t n : {0, 1, 7, 8, 9, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      context.parallel_for(n, 8, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin % 8, 0);
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (const auto& hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

TEST(Context, BlocksDoNotDependOnThreads) {
  for (int threads : {1, 2, 3}) {
    ExecContext context({.num_threads = threads});
    std::vector<std::array<int64_t, 2>> blocks(4);
    context.for_each_block(50, 16, [&](int64_t block, int64_t begin, int64_t end) {
      blocks[static_cast<size_t>(block)] = {begin, end};
    });
    const std::vector<std::array<int64_t, 2>> expected{{0, 16}, {16, 32}, {32, 48}, {48, 50}};
    EXPECT_EQ(blocks, expected);
  }
}

TEST(Context, RethrowsFromBodiesAndRunsNestedCallsSerially) {
  ExecContext context({.num_threads = 2});
  EXPECT_ERROR(context.parallel_for(100, 1,
                                    [](int64_t begin, int64_t) {
                                      if (begin == 0) throw ValueError("from a body");
                                    }),
               ValueError, "from a body");
  std::atomic<int64_t> sum = 0;
  context.parallel_for(4, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      context.parallel_for(10, 1, [&](int64_t b, int64_t e) { sum += e - b; });
  });
  EXPECT_EQ(sum, 40);
}

TEST(Context, KeepsStateOfOps) {
  struct Cache {
    int hits = 0;
  };
  ExecContext context;
  ++context.state<Cache>().hits;
  EXPECT_EQ(context.state<Cache>().hits, 1);
}

TEST(AllocatorTest, SizeClassesWasteLittle) {
  EXPECT_EQ(allocation_size_class(0), 64u);
  EXPECT_EQ(allocation_size_class(65), 128u);
  for (size_t bytes = 1; bytes < (1 << 22); bytes = bytes * 5 / 4 + 1) {
    const size_t size = allocation_size_class(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_EQ(size % 64, 0u);
    EXPECT_EQ(allocation_size_class(size), size);
    if (bytes >= 512) {
      EXPECT_LE(static_cast<double>(size), 1.126 * static_cast<double>(bytes));
    }
  }
}

TEST(AllocatorTest, ReusesBlocksAndCounts) {
  const auto allocator = make_cpu_allocator();
  void* first = allocator->allocate(1000);
  EXPECT_EQ(allocator->stats().bytes_in_use, 1024);
  allocator->deallocate(first, 1000);
  void* second = allocator->allocate(1010);  // same class
  EXPECT_EQ(first, second);
  EXPECT_EQ(allocator->stats().num_allocations, 2);
  EXPECT_EQ(allocator->stats().num_system_allocations, 1);
  EXPECT_EQ(allocator->stats().peak_bytes_in_use, 1024);
  allocator->deallocate(second, 1010);
  EXPECT_EQ(allocator->stats().bytes_in_use, 0);
  EXPECT_EQ(allocator->stats().bytes_reserved, 1024);
  allocator->reset_peak();
  EXPECT_EQ(allocator->stats().peak_bytes_in_use, 0);
  allocator->release_cached();
  EXPECT_EQ(allocator->stats().bytes_reserved, 0);
}

TEST(AllocatorTest, GivesCachedBlocksBackBeforeItRefuses) {
  const auto allocator = make_cpu_allocator(1 << 20);
  void* block = allocator->allocate(600 << 10);
  allocator->deallocate(block, 600 << 10);
  block = allocator->allocate(700 << 10);  // fits only without the cached block
  allocator->deallocate(block, 700 << 10);
}

TEST(AllocatorTest, OutOfMemorySaysWhoAndWhatToDo) {
  ExecContext context({.allocator = make_cpu_allocator(1 << 20)});
  ExecScope scope(context);
  const Tensor held = empty({1 << 17}, DType::F32);
  const std::string path = "layers.3.mlp.up";
  PathScope path_scope(path);
  OpScope op_scope("matmul");
  EXPECT_ERROR(
      empty({1 << 20}, DType::F32), OutOfMemory,
      "cpu memory: a request must fit the limit; got 4 MiB asked by matmul in layers.3.mlp.up, 512 "
      "KiB in use, limit 1 MiB; lower batch.micro_batch_size or batch.sequence_length, use a "
      "smaller model, or raise run.memory_limit_gib");
}

}  // namespace
}  // namespace obelisk
