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

// Cuts C into at most `most` pieces for `threads` that claim them one by one, so that the slowest
// is done soonest: it has its share of the pieces, and is on average half a piece behind. Unit of
// cost: kGemmRows x kGemmCut elements of C. Packing columns of op(B) costs about two such rows of
// register tiles, packing rows of a transposed A for a block of columns a third of one.
Pieces cut(int64_t m, int64_t n, bool a_transposed, int64_t most, int64_t threads) {
  constexpr int64_t kCutsOfBlock = kGemmColumns<float> / kGemmCut;
  const int64_t rows = ceil_div(m, kGemmRows), columns = ceil_div(n, kGemmCut);
  if (threads == 1) return {};
  const auto time = [&](const Pieces& pieces) {
    const int64_t height = ceil_div(rows, pieces.m), width = ceil_div(columns, pieces.n);
    const int64_t packs_of_a = a_transposed ? height * ceil_div(width, kCutsOfBlock) : 0;
    const int64_t piece = 3 * (height + 2) * width + packs_of_a;
    return (2 * ceil_div(pieces.m * pieces.n, threads) + 1) * piece;
  };
  Pieces best;
  for (int64_t along_n = 1; along_n <= std::min(most, columns); ++along_n)
    for (int64_t along_m = 1; along_m <= std::min(most / along_n, rows); ++along_m)
      if (const Pieces candidate{along_m, along_n}; time(candidate) < time(best)) best = candidate;
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
template <typename T, typename C>
void write_empty_sums(const GemmProblem<T, C>& p) {
  if (p.accumulate) return;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j)
      p.c[i * p.c_stride + j] = narrow<C>(p.bias != nullptr ? widen(p.bias[j]) : 0);
}

// Into how many pieces one of `count` problems may be cut.
int64_t most_pieces(int64_t count, int64_t work, int64_t min_work, int64_t threads) {
  if (threads == 1 || count >= 4 * threads) return 1;
  return std::clamp<int64_t>(work / min_work, 1, 4 * threads);
}

template <typename T, typename C>
void run_tiles(ExecContext& context, int64_t count, const GemmProblem<T, C>& first,
               FunctionRef<GemmProblem<T, C>(int64_t)> problem) {
  const int64_t m = first.m, n = first.n, work = m * n * first.k;
  const int64_t threads = context.num_threads();
  const Pieces pieces =
      cut(m, n, first.a.transposed, most_pieces(count, work, kMinTileWork, threads), threads);
  const int64_t num_pieces = pieces.m * pieces.n;
  const int64_t grain = std::max<int64_t>(1, kMinTileWork * num_pieces / work);
  const auto body = [&](int64_t begin, int64_t end, Compute<T>* scratch) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t piece = i % num_pieces;
      const Range rows = part(m, kGemmRows, pieces.m, piece / pieces.n);
      const Range columns = part(n, kGemmCut, pieces.n, piece % pieces.n);
      gemm_tile(problem(i / num_pieces), {rows.begin, rows.end, columns.begin, columns.end},
                scratch);
    }
  };
  context.parallel_for_with_scratch<Compute<T>>(count * num_pieces, grain, gemm_scratch(first),
                                                body);
}

// A single row of C (or a column that is dense, which is the row of the transposed problem).
template <typename T, typename C>
bool is_vector(const GemmProblem<T, C>& p) {
  return p.m == 1 || (p.n == 1 && p.c_stride == 1);
}

// `x` receives the vector operand when its elements are apart, or bf16.
template <typename T, typename C>
GemvProblem<T, C> as_gemv(const GemmProblem<T, C>& p, Compute<T>* x) {
  const bool row = p.m == 1;
  const GemmOperand<T>& vector = row ? p.a : p.b;
  const GemmOperand<T>& matrix = row ? p.b : p.a;
  const int64_t step = vector.transposed != row ? 1 : vector.stride;
  const Compute<T>* values = x;
  if constexpr (std::is_same_v<T, Compute<T>>)
    if (step == 1) values = vector.data;
  if (values == x)
    for (int64_t k = 0; k < p.k; ++k) x[k] = widen(vector.data[k * step]);
  return {.n = row ? p.n : p.m,
          .k = p.k,
          .x = values,
          .w = matrix.data,
          .stride = matrix.stride,
          .rows = matrix.transposed == row,
          .y = p.c,
          .bias = p.bias,
          .bias_step = row ? 1 : 0,
          .accumulate = p.accumulate};
}

template <typename T, typename C>
void run_vectors(ExecContext& context, int64_t count, const GemmProblem<T, C>& first,
                 FunctionRef<GemmProblem<T, C>(int64_t)> problem) {
  const int64_t length = std::max(first.m, first.n), work = length * first.k;
  const int64_t pieces = std::min(ceil_div(length, kGemmCut),
                                  most_pieces(count, work, kMinVectorWork, context.num_threads()));
  const int64_t grain = std::max<int64_t>(1, kMinVectorWork * pieces / work);
  const auto body = [&](int64_t begin, int64_t end, Compute<T>* x) {
    for (int64_t i = begin; i < end; ++i) {
      const Range range = part(length, kGemmCut, pieces, i % pieces);
      gemv_range(as_gemv(problem(i / pieces), x), range.begin, range.end);
    }
  };
  context.parallel_for_with_scratch<Compute<T>>(count * pieces, grain, first.k, body);
}

}  // namespace

template <typename T, typename C>
void gemm_batch(ExecContext& context, int64_t count,
                FunctionRef<GemmProblem<T, C>(int64_t)> problem) {
  if (count <= 0) return;
  const GemmProblem<T, C> first = problem(0);
  if (first.m == 0 || first.n == 0) return;
  if (first.k == 0) {
    for (int64_t i = 0; i < count; ++i) write_empty_sums(problem(i));
  } else if (is_vector(first)) {
    run_vectors(context, count, first, problem);
  } else {
    run_tiles(context, count, first, problem);
  }
}

template <typename T, typename C = T>
using Problems = FunctionRef<GemmProblem<T, C>(int64_t)>;
template void gemm_batch(ExecContext&, int64_t, Problems<float>);
template void gemm_batch(ExecContext&, int64_t, Problems<double>);
template void gemm_batch(ExecContext&, int64_t, Problems<BFloat16>);
template void gemm_batch(ExecContext&, int64_t, Problems<BFloat16, float>);

}  // namespace obelisk::ops
