#include "ops/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "tests/ops/golden.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

using ops::AttentionAttrs;
constexpr AttentionAttrs kCausal{true, 0.0};

class AttentionTest : public ::testing::Test {
 protected:
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

Tensor random(const Shape& shape, const char* stream, double scale = 1.0) {
  const Philox philox(5, random_stream("attention", stream), 0);
  Tensor tensor = empty(shape, DType::F32);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.data<float>()[i] = static_cast<float>(scale) * philox.normal(i);
  return tensor;
}

void expect_same_bits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_TRUE(a.is_contiguous() && b.is_contiguous());
  const size_t bytes = static_cast<size_t>(a.numel()) * size_of(a.dtype());
  EXPECT_EQ(0, std::memcmp(a.raw_data(), b.raw_data(), bytes));
}

TEST_F(AttentionTest, EqualsPyTorch) {
  for (const std::string& name : GoldenCase::names("attention"))
    for (DType dtype : {DType::F32, DType::F64}) {
      const GoldenCase golden(name);
      Tensor q = golden.input("q", dtype), k = golden.input("k", dtype),
             v = golden.input("v", dtype);
      for (Tensor* x : {&q, &k, &v}) x->set_requires_grad(true);
      const Tensor y =
          ops::attention(q, k, v, AttentionAttrs{golden.flag("causal"), golden.number("scale")});
      golden.expect_output("y", y);
      ops::backward(ops::sum(ops::multiply(y, golden.cotangent("y", dtype))));
      golden.expect_gradient("q", q.grad());
      golden.expect_gradient("k", k.grad());
      golden.expect_gradient("v", v.grad());
    }
}

// q, k and v as a layer hands them over: three views of one [B, T, 3 * H * D] projection.
TEST_F(AttentionTest, PackedProjectionGivesTheBitsOfCopies) {
  constexpr int64_t kBatch = 2, kTokens = 37, kHeads = 3, kWidth = 10, kRow = kHeads * kWidth;
  const Tensor packed = random({kBatch, kTokens, 3 * kRow}, "packed");
  const Shape shape = {kBatch, kTokens, kHeads, kWidth};
  TensorList views, copies;
  for (int64_t part = 0; part < 3; ++part) {
    views.push_back(packed.alias(shape, {kTokens * 3 * kRow, 3 * kRow, kWidth, 1}, part * kRow));
    copies.push_back(empty(shape, DType::F32));
    for (int64_t i = 0; i < copies.back().numel(); ++i)
      copies.back().data<float>()[i] =
          packed.data<float>()[i / kRow * 3 * kRow + part * kRow + i % kRow];
  }
  const Tensor g = random(shape, "gradient");
  const auto run = [&](const TensorList& x) {
    TensorList out = apply(ops::kAttention, x, kCausal);
    for (const Tensor& gradient :
         apply(ops::kAttentionBackward, {x[0], x[1], x[2], out[0], out[1], g}, kCausal))
      out.push_back(gradient);
    return out;
  };
  const TensorList from_views = run(views), from_copies = run(copies);
  for (size_t i = 0; i < from_views.size(); ++i) expect_same_bits(from_views[i], from_copies[i]);
}

TEST_F(AttentionTest, SharedHeadsGiveTheBitsOfRepeatedHeads) {
  constexpr int64_t kTokens = 19, kWidth = 6;
  const Tensor q = random({1, kTokens, 4, kWidth}, "q");
  const Tensor k = random({1, kTokens, 2, kWidth}, "k"), v = random({1, kTokens, 2, kWidth}, "v");
  const auto repeat = [&](const Tensor& x) {
    Tensor all = empty({1, kTokens, 4, kWidth}, DType::F32);
    for (int64_t i = 0; i < all.numel(); ++i) {
      const int64_t t = i / (4 * kWidth), h = i / kWidth % 4;
      all.data<float>()[i] = x.data<float>()[(t * 2 + h / 2) * kWidth + i % kWidth];
    }
    return all;
  };
  expect_same_bits(ops::attention(q, k, v, kCausal),
                   ops::attention(q, repeat(k), repeat(v), kCausal));
}

// One kv head and many threads: forward cuts along queries, backward runs on one thread.
TEST_F(AttentionTest, SameBitsOnMoreThreadsThanHeads) {
  const Tensor q = random({1, 300, 1, 16}, "q"), k = random({1, 300, 1, 16}, "k"),
               v = random({1, 300, 1, 16}, "v"), g = random({1, 300, 1, 16}, "g");
  const auto run = [&](int threads) {
    ExecContext context({.num_threads = threads});
    ExecScope scope(context);
    TensorList out = apply(ops::kAttention, {q, k, v}, kCausal);
    for (const Tensor& gradient :
         apply(ops::kAttentionBackward, {q, k, v, out[0], out[1], g}, kCausal))
      out.push_back(gradient);
    return out;
  };
  const TensorList one = run(1);
  for (int threads : {2, 5, 8}) {
    const TensorList many = run(threads);
    for (size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], many[i]);
  }
}

TEST_F(AttentionTest, CausalQueriesDoNotSeeLaterKeys) {
  constexpr int64_t kTokens = 40, kRow = 2 * 8;
  const Tensor q = random({1, kTokens, 2, 8}, "q");
  const Tensor k = random({1, kTokens, 2, 8}, "k"), v = random({1, kTokens, 2, 8}, "v");
  const Tensor before = ops::attention(q, k, v, kCausal);
  constexpr int64_t kChanged = 25;
  for (int64_t i = kChanged * kRow; i < kTokens * kRow; ++i) {
    k.data<float>()[i] = std::numeric_limits<float>::quiet_NaN();
    v.data<float>()[i] = 1e30f;
  }
  const Tensor after = ops::attention(q, k, v, kCausal);
  for (int64_t i = 0; i < kTokens * kRow; ++i) {
    if (i < kChanged * kRow)
      ASSERT_EQ(before.data<float>()[i], after.data<float>()[i]) << i;
    else
      ASSERT_TRUE(std::isnan(after.data<float>()[i])) << i;
  }
}

// Scores of several thousand: the largest wins outright, and nothing overflows on the way.
TEST_F(AttentionTest, HugeScoresSelectOneKey) {
  constexpr int64_t kTokens = 130, kWidth = 4;
  const Tensor q = random({1, kTokens, 1, kWidth}, "q", 100.0);
  const Tensor k = random({1, kTokens, 1, kWidth}, "k", 100.0);
  const Tensor v = random({1, kTokens, 1, kWidth}, "v");
  const TensorList out = apply(ops::kAttention, {q, k, v}, AttentionAttrs{});
  for (int64_t t = 0; t < kTokens; ++t) {
    double best = -std::numeric_limits<double>::infinity(), second = best;
    int64_t chosen = 0;
    for (int64_t s = 0; s < kTokens; ++s) {
      double score = 0;
      for (int64_t d = 0; d < kWidth; ++d)
        score += double(q.data<float>()[t * kWidth + d]) * k.data<float>()[s * kWidth + d] / 2.0;
      if (score > best) {
        second = best;
        best = score;
        chosen = s;
      } else {
        second = std::max(second, score);
      }
    }
    ASSERT_NEAR(out[1].data<float>()[t], best, 1e-6 * best + 1.0);
    if (best - second < 30.0) continue;
    for (int64_t d = 0; d < kWidth; ++d)
      ASSERT_EQ(out[0].data<float>()[t * kWidth + d], v.data<float>()[chosen * kWidth + d]) << t;
  }
}

TEST_F(AttentionTest, WithoutKeysTheResultIsZero) {
  const Tensor q = random({1, 3, 2, 4}, "q"), none = empty({1, 0, 2, 4}, DType::F32);
  const TensorList out = apply(ops::kAttention, {q, none, none}, AttentionAttrs{});
  for (int64_t i = 0; i < out[0].numel(); ++i) EXPECT_EQ(out[0].data<float>()[i], 0.0f);
  for (int64_t i = 0; i < out[1].numel(); ++i)
    EXPECT_EQ(out[1].data<float>()[i], -std::numeric_limits<float>::infinity());
  const TensorList grads =
      apply(ops::kAttentionBackward, {q, none, none, out[0], out[1], q}, AttentionAttrs{});
  for (int64_t i = 0; i < grads[0].numel(); ++i) EXPECT_EQ(grads[0].data<float>()[i], 0.0f);
}

TEST_F(AttentionTest, NeverHoldsAllScores) {
  ExecContext context({.num_threads = 2});
  ExecScope scope(context);
  constexpr int64_t kTokens = 2048, kWidth = 8;
  const Tensor q = random({1, kTokens, 1, kWidth}, "q");
  context.allocator()->reset_peak();
  const int64_t before = context.allocator()->stats().peak_bytes_in_use;
  const TensorList out = apply(ops::kAttention, {q, q, q}, kCausal);
  apply(ops::kAttentionBackward, {q, q, q, out[0], out[1], q}, kCausal);
  EXPECT_LT(context.allocator()->stats().peak_bytes_in_use - before, 4 * kTokens * kTokens / 10);
}

TEST_F(AttentionTest, LogSumHasNoGradient) {
  Tensor q = random({1, 2, 1, 4}, "q");
  q.set_requires_grad(true);
  const TensorList out = apply(ops::kAttention, {q, q, q}, AttentionAttrs{});
  EXPECT_ERROR(ops::backward(ops::sum(out[1])), Bug,
               "bug: attention: lse has no gradient; it is kept for backward only (backward of "
               "attention)");
}

struct BadCase {
  Shape q, k, v;
  bool causal;
  const char* text;
};

TEST_F(AttentionTest, Errors) {
  const BadCase cases[] = {
      {{2, 3, 4},
       {2, 3, 1, 4},
       {2, 3, 1, 4},
       false,
       "attention: q must be [B, T, H, D]; got q f32 [2, 3, 4], k f32 [2, 3, 1, 4], v f32 [2, 3, "
       "1, "
       "4], {causal=false, scale=0}"},
      {{2, 3, 1, 4},
       {2, 3, 4},
       {2, 3, 4},
       false,
       "attention: k must be [B, S, KV, D]; got q f32 [2, 3, 1, 4], k f32 [2, 3, 4], v f32 [2, 3, "
       "4], {causal=false, scale=0}"},
      {{2, 3, 1, 4},
       {2, 3, 1, 4},
       {2, 5, 1, 4},
       false,
       "attention: k and v must have the same shape; got q f32 [2, 3, 1, 4], k f32 [2, 3, 1, 4], v "
       "f32 [2, 5, 1, 4], {causal=false, scale=0}"},
      {{2, 3, 1, 4},
       {1, 3, 1, 4},
       {1, 3, 1, 4},
       false,
       "attention: q and k must have the same batch; got q f32 [2, 3, 1, 4], k f32 [1, 3, 1, 4], v "
       "f32 [1, 3, 1, 4], {causal=false, scale=0}"},
      {{2, 3, 1, 4},
       {2, 3, 1, 5},
       {2, 3, 1, 5},
       false,
       "attention: q and k must have the same last dim; got q f32 [2, 3, 1, 4], k f32 [2, 3, 1, "
       "5], "
       "v f32 [2, 3, 1, 5], {causal=false, scale=0}"},
      {{2, 3, 4, 4},
       {2, 3, 3, 4},
       {2, 3, 3, 4},
       false,
       "attention: heads of k must divide heads of q; got q f32 [2, 3, 4, 4], k f32 [2, 3, 3, 4], "
       "v "
       "f32 [2, 3, 3, 4], {causal=false, scale=0}"},
      {{2, 4, 1, 4},
       {2, 3, 1, 4},
       {2, 3, 1, 4},
       true,
       "attention: causal attention needs at least as many keys as queries; got q f32 [2, 4, 1, "
       "4], "
       "k f32 [2, 3, 1, 4], v f32 [2, 3, 1, 4], {causal=true, scale=0}"},
  };
  for (const BadCase& bad : cases)
    EXPECT_ERROR(ops::attention(zeros(bad.q, DType::F32), zeros(bad.k, DType::F32),
                                zeros(bad.v, DType::F32), AttentionAttrs{bad.causal, 0.0}),
                 ShapeError, bad.text);
  EXPECT_ERROR(
      ops::attention(zeros({1, 1, 1, 1}, DType::I64), zeros({1, 1, 1, 1}, DType::I64),
                     zeros({1, 1, 1, 1}, DType::I64), AttentionAttrs{}),
      ShapeError,
      "attention: dtypes must be f32, bf16 or f64; got q i64 [1, 1, 1, 1], k i64 [1, 1, 1, 1], v "
      "i64 [1, 1, 1, 1], {causal=false, scale=0}");
}

TEST_F(AttentionTest, BackwardErrors) {
  const auto f32 = [](Shape shape) { return zeros(shape, DType::F32); };
  const Tensor x = f32({1, 2, 1, 3});
  EXPECT_ERROR(
      apply(ops::kAttentionBackward, {x, x, x, f32({1, 2, 3}), f32({1, 1, 2}), x},
            AttentionAttrs{}),
      ShapeError,
      "attention_backward: o and do must be shaped like q; got q f32 [1, 2, 1, 3], k f32 "
      "[1, 2, 1, 3], v f32 [1, 2, 1, 3], o f32 [1, 2, 3], lse f32 [1, 1, 2], do f32 [1, 2, "
      "1, 3], {causal=false, scale=0}");
  EXPECT_ERROR(
      apply(ops::kAttentionBackward, {x, x, x, x, f32({1, 2, 1}), x}, AttentionAttrs{}), ShapeError,
      "attention_backward: lse must be [B, H, T]; got q f32 [1, 2, 1, 3], k f32 [1, 2, 1, 3], v "
      "f32 "
      "[1, 2, 1, 3], o f32 [1, 2, 1, 3], lse f32 [1, 2, 1], do f32 [1, 2, 1, 3], {causal=false, "
      "scale=0}");
}

// Two symbols may turn out equal, so the rule about keys and queries waits for numbers.
TEST_F(AttentionTest, InfersSymbolicShapes) {
  SymbolTable table;
  const Dim batch = table.symbol("B"), queries = table.symbol("T"), keys = table.symbol("S");
  const char* const names[] = {"q", "k", "v"};
  const TensorSpec inputs[] = {{{batch, queries, 4, 8}, DType::F32, true},
                               {{batch, keys, 2, 8}, DType::F32, true},
                               {{batch, keys, 2, 8}, DType::F32, true}};
  SpecList outputs;
  const Attrs attrs = kCausal;
  ops::kAttention.infer({"attention", names, inputs, attrs, outputs});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].shape, (DimShape{batch, queries, 4, 8}));
  EXPECT_EQ(outputs[1].shape, (DimShape{batch, 4, queries}));
}

}  // namespace
}  // namespace obelisk
