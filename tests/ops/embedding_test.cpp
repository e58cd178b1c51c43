#include "ops/embedding/embedding.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class Embedding : public ::testing::Test {
 protected:
  ExecContext context_{ExecOptions{}};
  ExecScope scope_{context_};
};

Tensor ids_of(std::vector<int64_t> ids, const Shape& shape) {
  return from_values<int64_t>(std::span<const int64_t>(ids), shape);
}

template <typename T>
Tensor load(const nlohmann::json& array) {
  Shape shape;
  for (int64_t dim : array.at("shape")) shape.push_back(dim);
  const auto data = array.at("data").get<std::vector<T>>();
  return from_values<T>(std::span<const T>(data), shape);
}

template <typename T>
void expect_golden(const nlohmann::json& golden, double relative) {
  Tensor table = load<T>(golden["inputs"]["weight"]);
  table.set_requires_grad(true);
  const Tensor y = ops::embedding(load<int64_t>(golden["inputs"]["ids"]), table);
  ops::backward(ops::sum(ops::multiply(y, load<T>(golden["cotangents"]["y"]))));
  auto compare = [&](const Tensor& actual, const nlohmann::json& expected) {
    const Tensor wanted = load<double>(expected);
    ASSERT_EQ(actual.shape(), wanted.shape());
    for (int64_t i = 0; i < wanted.numel(); ++i) {
      const double want = wanted.data<double>()[i];
      EXPECT_NEAR(actual.data<T>()[i], want, relative * std::max(1.0, std::abs(want)));
    }
  };
  compare(y, golden["outputs"]["y"]);
  compare(table.grad(), golden["gradients"]["weight"]);
}

TEST_F(Embedding, EqualsPyTorch) {
  std::ifstream file("tests/golden/ops.json");
  ASSERT_TRUE(file) << "run from the root of the repository";
  const auto golden = nlohmann::json::parse(file)["cases"]["embedding_repeated_ids"];
  expect_golden<double>(golden, golden["tolerance"]["f64"]);
  expect_golden<float>(golden, golden["tolerance"]["f32"]);
}

// Every id the same: all rows fall on one, and the sum still has one order.
TEST_F(Embedding, RepeatedIdsAddInOneOrder) {
  const Philox random(1, 2, 3);
  Tensor dy = empty({500, 96}, DType::F32);
  for (int64_t i = 0; i < dy.numel(); ++i) dy.data<float>()[i] = random.normal(i);
  const Tensor ids = ids_of(std::vector<int64_t>(500, 1), {500});
  std::vector<float> first;
  for (int threads : {1, 2, 3}) {
    ExecOptions options;
    options.num_threads = threads;
    ExecContext context(options);
    ExecScope scope(context);
    const Tensor table = zeros({3, 96}, DType::F32);
    apply(ops::kEmbeddingAccumulate, {table, ids, dy}, NoAttrs{});
    std::vector<float> result(table.data<float>(), table.data<float>() + table.numel());
    if (first.empty()) first = result;
    EXPECT_EQ(result, first) << threads;
  }
}

TEST_F(Embedding, GradientGoesIntoTheBufferTheLeafHas) {
  Tensor table = zeros({4, 2}, DType::F64);
  table.set_requires_grad(true);
  table.set_grad(full({4, 2}, DType::F64, 10));
  const Tensor buffer = table.grad();
  ops::backward(ops::sum(ops::embedding(ids_of({3, 0, 3}, {3}), table)));
  EXPECT_EQ(table.grad().storage(), buffer.storage());
  const double expected[] = {11, 11, 10, 10, 10, 10, 12, 12};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(buffer.data<double>()[i], expected[i]);
}

TEST_F(Embedding, RowsAreAddedToABatch) {
  Tensor x = full({2, 3, 2}, DType::F64, 1);
  Tensor table = empty({5, 2}, DType::F64);
  for (int i = 0; i < 10; ++i) table.data<double>()[i] = i;
  x.set_requires_grad(true);
  table.set_requires_grad(true);
  for (bool with_buffer : {false, true}) {
    x.set_grad(Tensor());
    table.set_grad(with_buffer ? full({5, 2}, DType::F64, 10) : Tensor());
    const Tensor y = ops::add_rows(x, table);
    for (int b = 0; b < 2; ++b)
      for (int i = 0; i < 6; ++i) EXPECT_EQ(y.data<double>()[b * 6 + i], 1 + i);
    ops::backward(ops::sum(ops::square(y)));
    const double start = with_buffer ? 10 : 0;
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(table.grad().data<double>()[i], start + (i < 6 ? 4.0 * (1 + i) : 0.0)) << i;
    EXPECT_EQ(x.grad().data<double>()[7], 4);
  }
}

TEST_F(Embedding, Messages) {
  const Tensor table = zeros({65, 4}, DType::F32);
  std::vector<int64_t> ids(20, 3);
  ids[12] = 70;
  ids[15] = -1;
  EXPECT_ERROR(ops::embedding(ids_of(ids, {4, 5}), table), ValueError,
               "embedding: ids must be in [0, 65); got 70 at position 12");
  ids[12] = 0;
  EXPECT_ERROR(ops::embedding(ids_of(ids, {4, 5}), table), ValueError,
               "embedding: ids must be in [0, 65); got -1 at position 15");
  EXPECT_ERROR(apply(ops::kEmbeddingAccumulate,
                     {table, ids_of(ids, {20}), zeros({20, 4}, DType::F32)}, NoAttrs{}),
               ValueError, "embedding_accumulate: ids must be in [0, 65); got -1 at position 15");
  EXPECT_ERROR(ops::embedding(zeros({2}, DType::F32), table), ShapeError,
               "embedding: ids must be i64; got ids f32 [2], table f32 [65, 4]");
  EXPECT_ERROR(ops::embedding(ids_of({1}, {1}), zeros({4}, DType::F32)), ShapeError,
               "embedding: table must be [V, D]; got ids i64 [1], table f32 [4]");
  EXPECT_ERROR(
      apply(ops::kEmbeddingAccumulate, {table, ids_of({1}, {1}), zeros({1, 5}, DType::F32)},
            NoAttrs{}),
      ShapeError,
      "embedding_accumulate: dy must be [..., D] with ids [...] and destination [V, D]; got "
      "destination f32 [65, 4], ids i64 [1], dy f32 [1, 5]");
  EXPECT_ERROR(
      apply(ops::kEmbeddingAccumulate, {table, zeros({1}, DType::F32), zeros({1, 4}, DType::F32)},
            NoAttrs{}),
      ShapeError,
      "embedding_accumulate: ids must be i64; got destination f32 [65, 4], ids f32 [1], dy "
      "f32 [1, 4]");
  EXPECT_ERROR(
      apply(ops::kEmbeddingAccumulate,
            {zeros({4}, DType::F32), ids_of({1}, {1}), zeros({1, 4}, DType::F32)}, NoAttrs{}),
      ShapeError,
      "embedding_accumulate: destination must be [V, D]; got destination f32 [4], ids i64 "
      "[1], dy f32 [1, 4]");
  EXPECT_ERROR(ops::add_rows(zeros({2, 9, 4}, DType::F32), zeros({8, 4}, DType::F32)), ShapeError,
               "add_rows: x must be [B, T, D] and table [P, D] with T at most P; got x f32 [2, 9, "
               "4], table f32 [8, 4]");
}

}  // namespace
}  // namespace obelisk
