// gemm: C = op(A) op(B) on raw row-major memory; the engine under matmul and the fused losses.
//
// One register-tiled kernel over the lane type serves f32 and f64; bf16 operands become f32 while
// they are packed, and a bf16 C is rounded once from the f32 sum. An element of C is one chain of
// fused multiply-adds over k, cut into fixed blocks of k whose sums are added in order; how C is
// cut into tiles and among threads never enters it. So its bits do not depend on the number of
// threads, on alignment, or on how many rows are computed beside it (but for the case of a single
// row or column, which has kernels of its own, chosen by shape).
//
// A library would be no faster: one thread of oneDNN 2.6 on AVX2 gives the same rate within a few
// percent, and splits k among threads for some shapes (16 x 16 x 4096 on 2 threads, 768 x 384 x 128
// on 3), so that bits depend on the thread count.
#pragma once

#include <cstdint>

#include "framework/base/function_ref.h"
#include "framework/tensor/context.h"
#include "framework/tensor/dtype.h"

namespace obelisk::ops {

// The stored matrix X; op(X) is X or its transpose. Rows lie `stride` elements apart and are dense.
template <typename T>
struct GemmOperand {
  const T* data;
  int64_t stride;
  bool transposed;
};

// C[i, j] (+)= sum_k op(A)[i, k] op(B)[k, j] + bias[j], i < m, j < n.
template <typename T, typename C = T>
struct GemmProblem {
  int64_t m, n, k;
  GemmOperand<T> a, b;
  C* c;
  int64_t c_stride;
  const T* bias = nullptr;  // [n]; not together with `accumulate`
  bool accumulate = false;
};

// Runs `count` problems of one size, given by problem(i) for i in [0, count); the threads share
// problems and parts of problems. T and C are float, double or BFloat16 alike, or T is BFloat16 and
// C float. Empty m, n or k are right: k = 0 gives the bias or zeros, or leaves C as it is when
// accumulating. C overlaps no operand, nor another C. Called inside a parallel_for body it runs on
// that thread alone.
template <typename T, typename C = T>
void gemm_batch(ExecContext& context, int64_t count,
                FunctionRef<GemmProblem<T, C>(int64_t)> problem);

template <typename T, typename C = T>
void gemm(ExecContext& context, const GemmProblem<T, C>& problem) {
  gemm_batch<T, C>(context, 1, [&](int64_t) { return problem; });
}

}  // namespace obelisk::ops
