#include "ops/cross_entropy/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/autograd.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "tests/ops/golden.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class CrossEntropy : public ::testing::Test {
 protected:
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

TEST_F(CrossEntropy, EqualsPyTorch) {
  for (const std::string& name : GoldenCase::names("cross_entropy"))
    for (DType dtype : {DType::F32, DType::F64}) {
      const GoldenCase golden(name);
      Tensor logits = golden.input("logits", dtype);
      logits.set_requires_grad(true);
      const Tensor loss = ops::cross_entropy(logits, golden.input("targets", DType::I64));
      golden.expect_output("loss", loss);
      ops::backward(loss, golden.cotangent("loss", dtype));
      golden.expect_gradient("logits", logits.grad());
    }
}

TEST_F(CrossEntropy, LinearFormEqualsPyTorch) {
  for (const std::string& name : GoldenCase::names("linear_cross_entropy"))
    for (DType dtype : {DType::F32, DType::F64}) {
      const GoldenCase golden(name);
      Tensor x = golden.input("x", dtype), w = golden.input("weight", dtype);
      x.set_requires_grad(true);
      w.set_requires_grad(true);
      const Tensor loss = ops::linear_cross_entropy(x, w, golden.input("targets", DType::I64));
      golden.expect_output("loss", loss);
      ops::backward(loss, golden.cotangent("loss", dtype));
      golden.expect_gradient("x", x.grad());
      golden.expect_gradient("weight", w.grad());
    }
}

TEST_F(CrossEntropy, UniformLogitsCostLogV) {
  const Tensor logits = full({4, 65}, DType::F32, 3.0);
  EXPECT_NEAR(ops::cross_entropy(logits, zeros({4}, DType::I64)).item<float>(), 4 * std::log(65.0),
              1e-5);
}

TEST_F(CrossEntropy, RefusesTargetsOutsideTheVocabulary) {
  const Tensor logits = zeros({3, 5}, DType::F32), x = zeros({3, 2}, DType::F32),
               w = zeros({5, 2}, DType::F32);
  Tensor targets = zeros({3}, DType::I64);
  targets.data<int64_t>()[1] = 5;
  EXPECT_ERROR(
      ops::cross_entropy(logits, targets), ValueError,
      "cross_entropy: targets must be in [0, 5), or -1 to leave a row out; got 5 at position 1");
  targets.data<int64_t>()[1] = -2;
  EXPECT_ERROR(ops::linear_cross_entropy(x, w, targets), ValueError,
               "linear_cross_entropy: targets must be in [0, 5), or -1 to leave a row out; got -2 "
               "at position 1");
}

TEST_F(CrossEntropy, SaysWhatDoesNotFit) {
  const Tensor logits = zeros({3, 5}, DType::F32);
  EXPECT_ERROR(ops::cross_entropy(logits, zeros({4}, DType::I64)), ShapeError,
               "cross_entropy: targets must be i64, one a row of logits; got logits f32 [3, 5], "
               "targets i64 [4]");
  EXPECT_ERROR(ops::cross_entropy(zeros({3}, DType::F32), zeros({3}, DType::I64)), ShapeError,
               "cross_entropy: logits must be [N, V]; got logits f32 [3], targets i64 [3]");
  EXPECT_ERROR(ops::linear_cross_entropy(zeros({3, 4}, DType::F32), zeros({5, 2}, DType::F32),
                                         zeros({3}, DType::I64)),
               ShapeError,
               "linear_cross_entropy: last dims of x and w must be equal; got x f32 [3, 4], w f32 "
               "[5, 2], targets "
               "i64 [3], {with_gradient=false}");
  EXPECT_THROW(ops::linear_cross_entropy(zeros({3, 4}, DType::F32), zeros({5, 4}, DType::F64),
                                         zeros({3}, DType::I64)),
               ShapeError);
  EXPECT_THROW(
      ops::scaled_accumulate(zeros({3}, DType::F32), zeros({4}, DType::F32), zeros({}, DType::F32)),
      ShapeError);
  EXPECT_THROW(ops::scaled_accumulate(zeros({3}, DType::F32), zeros({3}, DType::F32),
                                      zeros({1}, DType::F32)),
               ShapeError);
}

TEST_F(CrossEntropy, AGradientMustHaveBeenAskedFor) {
  Tensor x = zeros({3, 4}, DType::F32);
  x.set_requires_grad(true);
  const Tensor loss =
      apply(ops::kLinearCrossEntropy, {x, zeros({5, 4}, DType::F32), zeros({3}, DType::I64)},
            ops::LinearCrossEntropyAttrs{false})[0];
  EXPECT_ERROR(
      ops::backward(loss), Bug,
      "bug: linear_cross_entropy was applied without with_gradient and asked for one (backward of "
      "linear_cross_entropy)");
}

// 4096 x 8192 logits would be 128 MiB; what is taken stays below a chunk, dx and dw.
TEST_F(CrossEntropy, LogitsAreNeverWhole) {
  constexpr int64_t kRows = 4096, kWidth = 4, kVocabulary = 8192;
  const Tensor x = zeros({kRows, kWidth}, DType::F32), w = zeros({kVocabulary, kWidth}, DType::F32);
  Tensor wanted = x;
  wanted.set_requires_grad(true);
  context_.allocator()->reset_peak();
  const int64_t before = context_.allocator()->stats().bytes_in_use;
  ops::backward(ops::linear_cross_entropy(wanted, w, zeros({kRows}, DType::I64)));
  const int64_t taken = context_.allocator()->stats().peak_bytes_in_use - before;
  EXPECT_LE(ops::cross_entropy_chunk_rows(kRows, kVocabulary), 512);
  EXPECT_LT(taken, 30 << 20);
}

TEST_F(CrossEntropy, ChunksAreAFunctionOfTheSizes) {
  EXPECT_EQ(ops::cross_entropy_chunk_rows(1024, 50257), 256);
  EXPECT_EQ(ops::cross_entropy_chunk_rows(768, 65), 384);
  EXPECT_EQ(ops::cross_entropy_chunk_rows(3, 65), 3);
  EXPECT_EQ(ops::cross_entropy_chunk_rows(0, 65), 1);
  EXPECT_EQ(ops::cross_entropy_chunk_rows(1000, 1 << 30), 63);
}

}  // namespace
}  // namespace obelisk
