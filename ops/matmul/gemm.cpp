// How gemm's work is shared among threads. Bits never depend on it; see gemm.h.
#include "ops/matmul/gemm.h"

#include <algorithm>

#include "ops/matmul/gemm_kernels.h"

namespace obelisk::ops {
namespace {

// Multiply-adds worth waking a thread for: tens of microseconds, ten times what a fork and join
// cost. A matrix-vector product waits for memory, so that its own are dearer.
constexpr int64_t kMinTileWork = int64_t{1} << 20;
constexpr int64_t kMinVectorWork = int64_t{1} << 17;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Pieces {
  int64_t m = 1, n = 1;
};

// Cuts C for `pieces` threads so that the slowest is done soonest. A thread packs its own copy of
// its columns of op(B), which costs about as much as one more row of register tiles.
Pieces cut(int64_t m, int64_t n, int64_t pieces) {
  const int64_t rows = ceil_div(m, kGemmRows), columns = ceil_div(n, kGemmCut);
  Pieces best;
  int64_t best_cost = (rows + 1) * columns;
  for (int64_t along_n = 1; along_n <= std::min(pieces, columns); ++along_n) {
    const Pieces candidate{std::min(pieces / along_n, rows), along_n};
    const int64_t cost = (ceil_div(rows, candidate.m) + 1) * ceil_div(columns, candidate.n);
    if (cost < best_cost) {
      best_cost = cost;
      best = candidate;
    }
  }
  return best;
}

// Part `index` of `count` nearly equal parts of [0, size), cut at multiples of `unit`.
struct Range {
  int64_t begin, end;
};
Range part(int64_t size, int64_t unit, int64_t count, int64_t index) {
  const int64_t units = ceil_div(size, unit);
  return {units * index / count * unit, std::min(size, units * (index + 1) / count * unit)};
}

// k = 0: the sum of nothing.
template <typename T>
void write_empty_sums(const GemmProblem<T>& p) {
  if (p.accumulate) return;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j)
      p.c[i * p.c_stride + j] = p.bias != nullptr ? p.bias[j] : T{0};
}

// How many threads may share one of `count` problems.
int64_t sharers(int64_t count, int64_t work, int64_t min_work, int64_t threads) {
  if (count >= 4 * threads) return 1;
  return std::clamp<int64_t>(work / min_work, 1, threads);
}

template <typename T>
void run_tiles(ExecContext& context, int64_t count, const GemmProblem<T>& first,
               FunctionRef<GemmProblem<T>(int64_t)> problem) {
  const int64_t m = first.m, n = first.n, work = m * n * first.k;
  const Pieces pieces = cut(m, n, sharers(count, work, kMinTileWork, context.num_threads()));
  const int64_t num_pieces = pieces.m * pieces.n;
  const int64_t grain = std::max<int64_t>(1, kMinTileWork * num_pieces / work);
  const auto body = [&](int64_t begin, int64_t end, T* scratch) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t piece = i % num_pieces;
      const Range rows = part(m, kGemmRows, pieces.m, piece / pieces.n);
      const Range columns = part(n, kGemmCut, pieces.n, piece % pieces.n);
      gemm_tile(problem(i / num_pieces), {rows.begin, rows.end, columns.begin, columns.end},
                scratch);
    }
  };
  context.parallel_for_with_scratch<T>(count * num_pieces, grain, kGemmScratch<T>, body);
}

// A single row of C (or a column that is dense, which is the row of the transposed problem).
template <typename T>
bool is_vector(const GemmProblem<T>& p) {
  return p.m == 1 || (p.n == 1 && p.c_stride == 1);
}

// `x` receives the vector operand when its elements are apart.
template <typename T>
GemvProblem<T> as_gemv(const GemmProblem<T>& p, T* x) {
  const bool row = p.m == 1;
  const GemmOperand<T>& vector = row ? p.a : p.b;
  const GemmOperand<T>& matrix = row ? p.b : p.a;
  const bool dense = vector.transposed != row || vector.stride == 1;
  if (!dense)
    for (int64_t k = 0; k < p.k; ++k) x[k] = vector.data[k * vector.stride];
  return {.n = row ? p.n : p.m,
          .k = p.k,
          .x = dense ? vector.data : x,
          .w = matrix.data,
          .stride = matrix.stride,
          .rows = matrix.transposed == row,
          .y = p.c,
          .bias = p.bias,
          .bias_step = row ? 1 : 0,
          .accumulate = p.accumulate};
}

template <typename T>
void run_vectors(ExecContext& context, int64_t count, const GemmProblem<T>& first,
                 FunctionRef<GemmProblem<T>(int64_t)> problem) {
  const int64_t length = std::max(first.m, first.n), work = length * first.k;
  const int64_t pieces = std::min(ceil_div(length, kGemmCut),
                                  sharers(count, work, kMinVectorWork, context.num_threads()));
  const int64_t grain = std::max<int64_t>(1, kMinVectorWork * pieces / work);
  const auto body = [&](int64_t begin, int64_t end, T* x) {
    for (int64_t i = begin; i < end; ++i) {
      const Range range = part(length, kGemmCut, pieces, i % pieces);
      gemv_range(as_gemv(problem(i / pieces), x), range.begin, range.end);
    }
  };
  context.parallel_for_with_scratch<T>(count * pieces, grain, first.k, body);
}

}  // namespace

template <typename T>
void gemm_batch(ExecContext& context, int64_t count, FunctionRef<GemmProblem<T>(int64_t)> problem) {
  if (count <= 0) return;
  const GemmProblem<T> first = problem(0);
  if (first.m == 0 || first.n == 0) return;
  if (first.k == 0) {
    for (int64_t i = 0; i < count; ++i) write_empty_sums(problem(i));
  } else if (is_vector(first)) {
    run_vectors(context, count, first, problem);
  } else {
    run_tiles(context, count, first, problem);
  }
}

template void gemm_batch<float>(ExecContext&, int64_t, FunctionRef<GemmProblem<float>(int64_t)>);
template void gemm_batch<double>(ExecContext&, int64_t, FunctionRef<GemmProblem<double>(int64_t)>);

}  // namespace obelisk::ops
