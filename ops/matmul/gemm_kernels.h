// The vector kernels behind gemm.h, chosen by instruction set at run time. They run on the calling
// thread.
#pragma once

#include <algorithm>

#include "ops/matmul/gemm.h"

namespace obelisk::ops {

// Rows of the register tile.
inline constexpr int64_t kGemmRows = 6;
// Rows of a transposed A that are packed together: several cache lines of each row in memory.
inline constexpr int64_t kGemmPackedRows = 8 * kGemmRows;
// Depth of a block of k, fixed because it decides the order of additions.
inline constexpr int64_t kGemmDepth = 256;
// Columns of a packed block of op(B): with its depth it takes 256 KiB, half of a core's
// second-level cache.
template <typename T>
inline constexpr int64_t kGemmColumns = 1024 / sizeof(T);
// C is cut between threads at multiples of this many columns, whole register tiles on every
// instruction set.
inline constexpr int64_t kGemmCut = 32;
// Rows of the f32 sums of a bf16 C that wait for the next block of k, whole groups of packed rows:
// few enough for the caches, and enough that packing op(B) anew for the next ones costs little.
inline constexpr int64_t kGemmSumRows = 10 * kGemmPackedRows;

struct GemmTile {
  int64_t m_begin, m_end, n_begin, n_end;
};

// C is narrower than its sums, and they take more than one block of k.
template <typename T, typename C>
bool keeps_sums(const GemmProblem<T, C>& problem) {
  return !std::is_same_v<C, Compute<T>> && problem.k > kGemmDepth;
}

// Elements of scratch memory for gemm_tile.
template <typename T, typename C>
int64_t gemm_scratch(const GemmProblem<T, C>& problem) {
  constexpr int64_t kColumns = kGemmColumns<Compute<T>>;
  const int64_t sums = keeps_sums(problem) ? std::min(problem.m, kGemmSumRows) * kColumns : 0;
  return (kColumns + kGemmPackedRows) * kGemmDepth + sums;
}

// The part of C inside `tile`; k > 0. `scratch` is fastest when aligned to 64 bytes.
void gemm_tile(const GemmProblem<float>& problem, const GemmTile& tile, float* scratch);
void gemm_tile(const GemmProblem<double>& problem, const GemmTile& tile, double* scratch);
void gemm_tile(const GemmProblem<BFloat16>& problem, const GemmTile& tile, float* scratch);
void gemm_tile(const GemmProblem<BFloat16, float>& problem, const GemmTile& tile, float* scratch);

// y[j] (+)= sum_k x[k] W[k, j] + bias[j * bias_step], where W[k, j] lies at w[j * stride + k] when
// `rows`, that is, y[j] is the dot product of x with a row in memory, else at w[k * stride + j].
template <typename T, typename C = T>
struct GemvProblem {
  int64_t n, k;
  const Compute<T>* x;
  const T* w;
  int64_t stride;
  bool rows;
  C* y;
  const T* bias;
  int64_t bias_step;
  bool accumulate;
};

// Columns [begin, end) of y; k > 0.
void gemv_range(const GemvProblem<float>& problem, int64_t begin, int64_t end);
void gemv_range(const GemvProblem<double>& problem, int64_t begin, int64_t end);
void gemv_range(const GemvProblem<BFloat16>& problem, int64_t begin, int64_t end);
void gemv_range(const GemvProblem<BFloat16, float>& problem, int64_t begin, int64_t end);

}  // namespace obelisk::ops
