#include "ops/matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "framework/autograd/node.h"
#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/gemm.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

Tensor random_tensor(const Shape& shape, DType dtype, uint64_t stream) {
  Tensor x = empty(shape, dtype);
  const Philox random(5, stream, 0);
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (dtype == DType::F32)
      x.data<float>()[i] = random.normal(i);
    else if (dtype == DType::BF16)
      x.data<BFloat16>()[i] = bfloat16_from(random.normal(i));
    else
      x.data<double>()[i] = random.normal(i);
  }
  return x;
}

void expect_same_bytes(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(0, std::memcmp(a.raw_data(), b.raw_data(), a.numel() * size_of(a.dtype()))) << what;
}

class MatmulTest : public ::testing::Test {
 protected:
  Tensor random(const Shape& shape, DType dtype = DType::F32) {
    return random_tensor(shape, dtype, ++stream_);
  }

  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
  uint64_t stream_ = 0;
};

TEST_F(MatmulTest, ErrorsNameTheRuleAndTheOperands) {
  const Tensor a = zeros({2, 3}, DType::F32), w = zeros({4, 5}, DType::F32);
  EXPECT_ERROR(ops::matmul(a, w), ShapeError,
               "matmul: inner dims of a and b must be equal; got a f32 [2, 3], b f32 [4, 5], bias "
               "absent, {transpose_a=false, transpose_b=false, sum_leading=false}");
  EXPECT_ERROR(ops::linear(a, w, Tensor()), ShapeError,
               "matmul: inner dims of a and b must be equal; got a f32 [2, 3], b f32 [4, 5], bias "
               "absent, {transpose_a=false, transpose_b=true, sum_leading=false}");
  EXPECT_ERROR(
      ops::linear(a, zeros({5, 3}, DType::F32), zeros({4}, DType::F32)), ShapeError,
      "matmul: bias must be as long as the last dim of the result; got a f32 [2, 3], b f32 "
      "[5, 3], bias f32 [4], {transpose_a=false, transpose_b=true, sum_leading=false}");
  EXPECT_ERROR(ops::matmul(zeros({2, 2, 3}, DType::F32), zeros({4, 3, 5}, DType::F32)), ShapeError,
               "matmul: leading dims of a and b must be equal, or one of them has none; got a f32 "
               "[2, 2, 3], b f32 [4, 3, 5], bias absent, {transpose_a=false, transpose_b=false, "
               "sum_leading=false}");
  EXPECT_ERROR(
      ops::matmul(zeros({2, 2, 3}, DType::F32), zeros({3, 5}, DType::F32), {.sum_leading = true}),
      ShapeError,
      "matmul: leading dims of a and b must be equal when they are summed; got a f32 [2, 2, 3], b "
      "f32 [3, 5], bias absent, {transpose_a=false, transpose_b=false, sum_leading=true}");
  EXPECT_ERROR(ops::matmul(zeros({3}, DType::F32), w, {.transpose_a = true}), ShapeError,
               "matmul: a must be a matrix, or one row; got a f32 [3], b f32 [4, 5], bias absent, "
               "{transpose_a=true, transpose_b=false, sum_leading=false}");
  EXPECT_ERROR(ops::matmul(a, zeros({3}, DType::F32)), ShapeError,
               "matmul: b must have at least two dims; got a f32 [2, 3], b f32 [3], bias absent, "
               "{transpose_a=false, transpose_b=false, sum_leading=false}");
  EXPECT_ERROR(ops::matmul(a, zeros({3, 5}, DType::F64)), ShapeError,
               "matmul: dtypes must be alike; got a f32 [2, 3], b f64 [3, 5], bias absent, "
               "{transpose_a=false, transpose_b=false, sum_leading=false}");
  EXPECT_ERROR(ops::matmul_accumulate(zeros({2, 5}, DType::F64), a, zeros({3, 5}, DType::F32)),
               ShapeError,
               "matmul_accumulate: dtypes must be alike; got destination f64 [2, 5], a f32 [2, 3], "
               "b f32 [3, 5], {transpose_a=false, transpose_b=false, sum_leading=false}");
  EXPECT_ERROR(ops::matmul_accumulate(zeros({2, 4}, DType::F32), a, zeros({3, 5}, DType::F32)),
               ShapeError,
               "matmul_accumulate: destination must have the shape of the product; got destination "
               "f32 [2, 4], a f32 [2, 3], b f32 [3, 5], {transpose_a=false, transpose_b=false, "
               "sum_leading=false}");
}

struct Size {
  int64_t m, n, k;
};

// Among them the sizes for which libraries split the sum over k between threads.
constexpr Size kSizes[] = {{1, 768, 768},   {1, 3000, 1000}, {768, 1, 768},   {1, 1, 5000},
                           {16, 16, 4096},  {3, 5, 20000},   {64, 64, 5000},  {2, 3000, 256},
                           {768, 384, 128}, {768, 128, 512}, {384, 128, 768}, {65, 128, 768},
                           {512, 65, 128},  {33, 129, 257},  {7, 31, 1},      {500, 2, 300},
                           {128, 2000, 64}, {250, 250, 250}};

TEST_F(MatmulTest, BitsDoNotDependOnTheNumberOfThreads) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16})
    for (const Size& size : kSizes)
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          const auto [m, n, k] = size;
          const Tensor a = random(ta ? Shape{k, m} : Shape{m, k}, dtype);
          const Tensor b = random(tb ? Shape{n, k} : Shape{k, n}, dtype);
          const Tensor bias = random({n}, dtype), start = random({m, n}, dtype);
          const ops::MatmulAttrs attrs{.transpose_a = ta, .transpose_b = tb};
          Tensor first, first_sum;
          for (int threads : {1, 2, 3, 7}) {
            ExecContext context({.num_threads = threads});
            ExecScope scope(context);
            const Tensor y = ops::matmul(a, b, attrs, bias);
            const Tensor sum = ops::scale(start, 1.0);
            ops::matmul_accumulate(sum, a, b, attrs);
            if (threads == 1) {
              first = y;
              first_sum = sum;
            }
            const std::string what = fmt::format("{} {}x{}x{} {}{} on {} threads", to_string(dtype),
                                                 m, n, k, ta, tb, threads);
            expect_same_bytes(first, y, what);
            expect_same_bytes(first_sum, sum, what);
          }
        }
}

// A row's bits are its own, whatever is computed beside it: a micro-batch cut differently gives the
// same activations.
TEST_F(MatmulTest, RowsDoNotDependOnTheirNeighbours) {
  const Tensor x = random({61, 300}), w = random({70, 300}), bias = random({70});
  const Tensor all = ops::linear(x, w, bias);
  for (int64_t first : {0, 5, 13})
    for (int64_t count : {2, 6, 7, 40}) {
      const Tensor rows = ops::linear(x.alias({count, 300}, {300, 1}, first * 300), w, bias);
      expect_same_bytes(rows, all.alias({count, 70}, {70, 1}, first * 70), "rows");
    }
}

// q k^T of one packed projection [B, T, 2, H, D]: leading dims that do not fold.
TEST_F(MatmulTest, StridedViewsOfAnyLeadingDims) {
  constexpr int64_t kB = 2, kT = 5, kH = 3, kD = 4;
  for (const DType dtype : {DType::F32, DType::F64}) {
    const Tensor packed = random({kB, kT, 2, kH, kD}, dtype);
    const Shape heads{kB, kH, kT, kD};
    const Strides strides{kT * 2 * kH * kD, kD, 2 * kH * kD, 1};
    const Tensor q = packed.alias(heads, strides, 0);
    const Tensor k = packed.alias(heads, strides, kH * kD);
    const Tensor dense_q = ops::scale(q, 1.0), dense_k = ops::scale(k, 1.0);
    ASSERT_TRUE(dense_q.is_contiguous());
    for (const ops::MatmulAttrs attrs :
         {ops::MatmulAttrs{.transpose_b = true}, ops::MatmulAttrs{.transpose_a = true},
          ops::MatmulAttrs{.transpose_b = true, .sum_leading = true}})
      expect_same_bytes(ops::matmul(q, k, attrs), ops::matmul(dense_q, dense_k, attrs),
                        Attrs(attrs).to_string());
    // Dense ones fold into one long sum, which rounds otherwise.
    const ops::MatmulAttrs sums{.transpose_a = true, .sum_leading = true};
    const Tensor difference =
        ops::subtract(ops::matmul(q, k, sums), ops::matmul(dense_q, dense_k, sums));
    const Tensor worst = ops::max(ops::abs(difference));
    EXPECT_LT(dtype == DType::F32 ? worst.item<float>() : worst.item<double>(),
              dtype == DType::F32 ? 1e-5 : 1e-14);
    const Tensor w = random({7, kD}, dtype);
    expect_same_bytes(ops::linear(q, w, Tensor()), ops::linear(dense_q, w, Tensor()), "linear");
  }
}

TEST_F(MatmulTest, TransposedRowsThatAreNotDense) {
  EXPECT_ERROR(
      ops::matmul(zeros({2, 3}, DType::F32).alias({3, 2}, {1, 3}, 0), zeros({2, 3}, DType::F32)),
      ShapeError,
      "matmul: input 0 must be dense in its last dim; got shape [3, 2] with strides [1, "
      "3]; use ops::contiguous");
}

// Sums of ones are exact in f32 up to 2^24: no product is lost or taken twice.
TEST_F(MatmulTest, CountsEveryProductOnce) {
  for (int64_t k : {1, 2, 3, 4, 5, 31, 255, 256, 257, 511, 512, 513, 100000})
    for (int64_t m : {1, 2, 7})
      for (int64_t n : {1, 9}) {
        const Tensor y = ops::matmul(full({m, k}, DType::F32, 1.0), full({k, n}, DType::F32, 1.0));
        for (int64_t i = 0; i < m * n; ++i)
          ASSERT_EQ(y.data<float>()[i], static_cast<float>(k)) << m << " " << n << " " << k;
      }
}

TEST_F(MatmulTest, NonFiniteValuesStayInTheirRowsAndColumns) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor a = full({13, 40}, DType::F32, 1.0), b = full({40, 33}, DType::F32, 1.0);
  a.data<float>()[3 * 40 + 7] = nan;
  b.data<float>()[11 * 33 + 32] = infinity;
  const Tensor y = ops::matmul(a, b);
  for (int64_t i = 0; i < 13; ++i)
    for (int64_t j = 0; j < 33; ++j) {
      const float value = y.data<float>()[i * 33 + j];
      if (i == 3)
        EXPECT_TRUE(std::isnan(value));
      else
        EXPECT_EQ(value, j == 32 ? infinity : 40.0f);
    }
}

// A zero times an infinity is a NaN also where rows of the register tile are padding.
TEST_F(MatmulTest, PaddingDoesNotLeak) {
  const Tensor a = full({1, 3}, DType::F32, 0.0), b = full({3, 2}, DType::F32, 1.0);
  const Tensor a2 = full({7, 3}, DType::F32, 0.0);
  for (const Tensor& x : {a, a2}) {
    const Tensor y = ops::matmul(x, b);
    for (int64_t i = 0; i < y.numel(); ++i) EXPECT_EQ(y.data<float>()[i], 0.0f);
  }
}

TEST_F(MatmulTest, WeightGradientsGoStraightIntoTheirBuffer) {
  const Tensor x = random({4, 32, 64});
  Tensor w = random({256, 64}), bias = random({256});
  w.set_requires_grad(true);
  bias.set_requires_grad(true);
  w.set_grad(full(w.shape(), DType::F32, 1.0));
  bias.set_grad(full(bias.shape(), DType::F32, 1.0));
  const Tensor loss = ops::sum(ops::linear(x, w, bias));
  const Tensor buffer = w.grad();
  context_.allocator()->reset_peak();
  const int64_t before = context_.allocator()->stats().bytes_in_use;
  ops::backward(loss);
  EXPECT_EQ(w.grad().raw_data(), buffer.raw_data());
  // dw[o, i] = 1 + sum over rows of x[r, i]; the upstream gradient is all ones.
  for (int64_t i = 0; i < 64; ++i) {
    double want = 1;
    for (int64_t r = 0; r < 128; ++r) want += x.data<float>()[r * 64 + i];
    for (int64_t o : {0, 100, 255}) EXPECT_NEAR(buffer.data<float>()[o * 64 + i], want, 1e-4);
  }
  EXPECT_EQ(bias.grad().data<float>()[17], 129.0f);
  // What backward may take: the gradient of linear's result, and gemm's packing.
  const int64_t result = 4 * 32 * 256 * 4, packing = 2 * 300 * 1024;
  EXPECT_LE(context_.allocator()->stats().peak_bytes_in_use - before, 2 * result + packing);
}

TEST_F(MatmulTest, TakesNoMemoryFromTheSystemOnceWarm) {
  const Tensor x = random({300, 200}), w = random({100, 200});
  auto step = [&] { return ops::linear(x, w, Tensor()); };
  step();
  step();
  const int64_t before = context_.allocator()->stats().num_system_allocations;
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(context_.allocator()->stats().num_system_allocations, before);
}

TEST_F(MatmulTest, GemmRunsInsideParallelFor) {
  const Tensor x = random({8, 70, 90}), w = random({50, 90});
  const Tensor want = ops::linear(x, w, Tensor());
  const Tensor got = empty(want.shape(), DType::F32);
  context_.parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      ops::gemm<float>(context_, {.m = 70,
                                  .n = 50,
                                  .k = 90,
                                  .a = {x.data<float>() + i * 70 * 90, 90, false},
                                  .b = {w.data<float>(), 90, true},
                                  .c = got.data<float>() + i * 70 * 50,
                                  .c_stride = 50});
  });
  expect_same_bytes(want, got, "inside a body");
}

// A result written between the columns of a wider matrix leaves the others alone.
TEST_F(MatmulTest, GemmKeepsToItsColumns) {
  for (const Size& size : {Size{5, 1, 9}, Size{1, 5, 9}, Size{7, 18, 9}}) {
    const auto [m, n, k] = size;
    const Tensor a = random({m, k}), b = random({k, n});
    const Tensor want = ops::matmul(a, b);
    const int64_t stride = n + 3;
    const Tensor c = full({m, stride}, DType::F32, 5.0);
    ops::gemm<float>(context_, {.m = m,
                                .n = n,
                                .k = k,
                                .a = {a.data<float>(), k, false},
                                .b = {b.data<float>(), n, false},
                                .c = c.data<float>(),
                                .c_stride = stride});
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < stride; ++j)
        EXPECT_NEAR(c.data<float>()[i * stride + j], j < n ? want.data<float>()[i * n + j] : 5.0f,
                    1e-5f);
  }
}

TEST_F(MatmulTest, ShapeRuleRunsOnSymbols) {
  SymbolTable table;
  const Dim batch = table.symbol("B"), length = table.symbol("T");
  auto infer = [](std::vector<TensorSpec> inputs, const ops::MatmulAttrs& attrs) {
    inputs.push_back({{}, DType::F32, false});
    SpecList outputs;
    ops::kMatmul.infer({"matmul", ops::kMatmul.input_names, inputs, attrs, outputs});
    return to_string(outputs[0]);
  };
  EXPECT_EQ(infer({{{batch, length, 128}}, {{384, 128}}}, {.transpose_b = true}),
            "f32 [B, T, 384]");
  EXPECT_EQ(infer({{{batch, length, 384}}, {{batch, length, 128}}},
                  {.transpose_a = true, .sum_leading = true}),
            "f32 [384, 128]");
  EXPECT_THROW(infer({{{batch, length}}, {{batch, 5}}}, {}), ShapeError);
}

TEST_F(MatmulTest, CostCountsTwoOperationsAProduct) {
  const std::vector<TensorSpec> inputs{{{2, 3, 5}}, {{7, 5}}, {{7}}};
  SpecList outputs;
  const ops::MatmulAttrs attrs{.transpose_b = true};
  ops::kMatmul.infer({"matmul", ops::kMatmul.input_names, inputs, attrs, outputs});
  const Cost cost = ops::kMatmul.cost(inputs, outputs, attrs);
  EXPECT_EQ(cost.flops, 2 * 6 * 5 * 7);
  EXPECT_EQ(cost.bytes_read, 4 * (30 + 35 + 7));
  EXPECT_EQ(cost.bytes_written, 4 * 42);
}

}  // namespace
}  // namespace obelisk
