// From tensors to gemm problems: which leading dims fold into one large product, and where the
// matrices of a batch lie.
#include <algorithm>
#include <optional>

#include "ops/matmul/gemm.h"
#include "ops/matmul/matmul.h"

namespace obelisk::ops {
namespace {

// A tensor as matrices [rows, columns], one for each index of its leading dims.
struct Matrices {
  explicit Matrices(const Tensor& x) : shape(x.shape()), strides(x.strides()) {
    num_leading = std::max(0, shape.size() - 2);
    columns = shape.last();
    rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
    row_stride = shape.size() < 2 ? columns : strides[shape.size() - 2];
    for (int i = 0; i < num_leading; ++i) count *= shape[i];
  }

  // Where matrix `index` begins, in elements.
  int64_t offset(int64_t index) const {
    int64_t result = 0;
    for (int i = num_leading - 1; i >= 0; --i) {
      result += index % shape[i] * strides[i];
      index /= shape[i];
    }
    return result;
  }

  // The stride of the single matrix [count * rows, columns] that all of them form in memory, if
  // they do.
  std::optional<int64_t> folded_stride() const {
    std::optional<int64_t> inner;  // of the dims seen so far, as one
    int64_t length = 1;
    for (int i = shape.size() - 2; i >= 0; --i) {
      if (shape[i] == 1) continue;
      if (inner && strides[i] != *inner * length) return std::nullopt;
      if (!inner) inner = strides[i];
      length *= shape[i];
    }
    return inner ? *inner : columns;
  }

  Shape shape;
  Strides strides;
  int num_leading = 0;
  int64_t count = 1, rows = 1, columns = 1, row_stride = 1;
};

template <typename T, typename C>
struct Product {
  ExecContext& context;
  const T* a;
  const T* b;
  C* c;
  const T* bias;
  bool accumulate;
};

// One product of matrices that begin at `a` and `b`.
template <typename T, typename C>
GemmProblem<T, C> problem(const Product<T, C>& run, const Matrices& a, const Matrices& b,
                          const MatmulAttrs& attrs) {
  const int64_t m = attrs.transpose_a ? a.columns : a.rows;
  const int64_t n = attrs.transpose_b ? b.rows : b.columns;
  return {.m = m,
          .n = n,
          .k = attrs.transpose_a ? a.rows : a.columns,
          .a = {run.a, a.row_stride, attrs.transpose_a},
          .b = {run.b, b.row_stride, attrs.transpose_b},
          .c = run.c,
          .c_stride = n,
          .bias = run.bias,
          .accumulate = run.accumulate};
}

// y [L.., M, N]: one problem when a's rows fold over the leading dims, else one for each.
template <typename T, typename C>
void multiply(const Product<T, C>& run, const Matrices& a, const Matrices& b,
              const MatmulAttrs& attrs) {
  GemmProblem<T, C> base = problem(run, a, b, attrs);
  const auto folded = a.folded_stride();
  if (b.num_leading == 0 && !attrs.transpose_a && folded) {
    base.m *= a.count;
    base.a.stride = *folded;
    return gemm(run.context, base);
  }
  const int64_t count = a.num_leading > 0 ? a.count : b.count;
  gemm_batch<T, C>(run.context, count, [&](int64_t i) {
    GemmProblem<T, C> one = base;
    one.a.data += a.num_leading > 0 ? a.offset(i) : 0;
    one.b.data += b.num_leading > 0 ? b.offset(i) : 0;
    one.c += i * base.m * base.n;
    return one;
  });
}

// y [M, N], added over the leading dims: one problem when they fold into k, else one after another.
template <typename T, typename C>
void multiply_and_sum(const Product<T, C>& run, const Matrices& a, const Matrices& b,
                      const MatmulAttrs& attrs) {
  GemmProblem<T, C> base = problem(run, a, b, attrs);
  const int64_t count = a.num_leading > 0 ? a.count : b.count;
  const bool same = a.num_leading == b.num_leading;
  const auto a_folded = a.folded_stride(), b_folded = b.folded_stride();
  if (count == 0) base.k = 0;
  if (same && attrs.transpose_a && !attrs.transpose_b && a_folded && b_folded) {
    base.k *= count;
    base.a.stride = *a_folded;
    base.b.stride = *b_folded;
    return gemm(run.context, base);
  }
  for (int64_t i = 0; i < std::max<int64_t>(count, 1); ++i) {
    GemmProblem<T, C> one = base;
    if (count > 0) {
      one.a.data += a.num_leading > 0 ? a.offset(i) : 0;
      one.b.data += b.num_leading > 0 ? b.offset(i) : 0;
    }
    one.accumulate = base.accumulate || i > 0;
    if (i > 0) one.bias = nullptr;
    gemm(run.context, one);
  }
}

// The same into a C narrower than its sums, which are rounded once.
template <typename T>
void multiply_and_sum(const Product<T, T>& run, const Tensor& c, const Matrices& a,
                      const Matrices& b, const MatmulAttrs& attrs) {
  const Workspace<Compute<T>> sums(run.context, c.numel());
  if (run.accumulate) std::transform(run.c, run.c + c.numel(), sums.data(), widen<T>);
  const Product<T, Compute<T>> wide{run.context, run.a,    run.b,
                                    sums.data(), run.bias, run.accumulate};
  multiply_and_sum(wide, a, b, attrs);
  std::transform(sums.data(), sums.data() + c.numel(), run.c, narrow<T>);
}

template <typename T, typename C>
void run_as(const KernelArgs& args, const Tensor& a, const Tensor& b, const Tensor& c,
            const Tensor& bias, bool accumulate) {
  const auto& attrs = args.attrs.as<MatmulAttrs>();
  const Product<T, C> product{args.context,
                              a.data<T>(),
                              b.data<T>(),
                              c.data<C>(),
                              bias.defined() ? bias.data<T>() : nullptr,
                              accumulate};
  if (!attrs.sum_leading) return multiply(product, Matrices(a), Matrices(b), attrs);
  if constexpr (std::is_same_v<C, Compute<T>>)
    multiply_and_sum(product, Matrices(a), Matrices(b), attrs);
  else
    multiply_and_sum(product, c, Matrices(a), Matrices(b), attrs);
}

void run(const KernelArgs& args, const Tensor& a, const Tensor& b, const Tensor& c,
         const Tensor& bias, bool accumulate) {
  visit_float(a.dtype(), "matmul", [&]<typename T>() {
    if (c.dtype() == a.dtype())
      run_as<T, T>(args, a, b, c, bias, accumulate);
    else
      run_as<T, Compute<T>>(args, a, b, c, bias, accumulate);
  });
}

}  // namespace

void matmul_cpu(const KernelArgs& args) {
  run(args, args.inputs[0], args.inputs[1], args.outputs[0], args.inputs[2], false);
}

void matmul_accumulate_cpu(const KernelArgs& args) {
  run(args, args.inputs[1], args.inputs[2], args.inputs[0], Tensor(), true);
}

}  // namespace obelisk::ops
