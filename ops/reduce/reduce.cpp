#include "ops/reduce/reduce.h"

#include <cmath>
#include <limits>

#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/strided.h"
#include "ops/layout/layout.h"
#include "ops/reduce/reduce_kernels.h"

namespace obelisk::ops {
namespace {

constexpr const char* kNames[] = {"x"};
constexpr const char* kMaxBackwardNames[] = {"x", "y", "dy"};

bool is_reduced(int64_t dims, int dim) { return (dims >> dim & 1) != 0; }

// x's dims in two groups: those that stay, which index the result, and those reduced for each.
struct Groups {
  Shape kept, reduced;
  Strides kept_strides, reduced_strides;

  Groups(const Tensor& x, int64_t dims) {
    for (int i = 0; i < x.num_dims(); ++i) {
      (is_reduced(dims, i) ? reduced : kept).push_back(x.shape()[i]);
      (is_reduced(dims, i) ? reduced_strides : kept_strides).push_back(x.strides()[i]);
    }
  }
  int64_t count() const { return num_elements(reduced); }
  int64_t offset(int64_t output, int64_t index) const {
    return strided_offset(output, kept, kept_strides) +
           strided_offset(index, reduced, reduced_strides);
  }
};

DimShape keepdim_shape(const DimShape& shape, int64_t dims) {
  DimShape result;
  for (int i = 0; i < shape.size(); ++i) result.push_back(is_reduced(dims, i) ? Dim(1) : shape[i]);
  return result;
}

// Shapes -------------------------------------------------------------------------------------

void infer_reduce(const InferArgs& args) {
  args.require_same_float({0});
  const auto& [dims, keepdim, wide] = args.attrs.as<ReduceAttrs>();
  const DimShape& shape = args.shape(0);
  args.require(dims >= 0 && dims >> shape.size() == 0, "dims must be a set of dims of x");
  DimShape result;
  for (int i = 0; i < shape.size(); ++i) {
    if (!is_reduced(dims, i)) result.push_back(shape[i]);
    if (is_reduced(dims, i) && keepdim) result.push_back(1);
  }
  const DType dtype = args.inputs[0].dtype;
  args.add_output(result, wide && dtype == DType::BF16 ? DType::F32 : dtype);
}

void infer_argmax(const InferArgs& args) {
  args.require_same_float({0});
  const DimShape& shape = args.shape(0);
  args.require(shape.size() > 0, "x must have a last dim");
  DimShape result;
  for (int i = 0; i + 1 < shape.size(); ++i) result.push_back(shape[i]);
  args.require(!(shape.last() == 0) || product(result) == 0, "last dim of x must not be empty");
  args.add_output(result, DType::I64);
}

void infer_max_backward(const InferArgs& args) {
  args.require_same_float({0, 1, 2});
  args.require(args.shape(1) == args.shape(2), "y and dy must have the same shape");
  args.add_output(args.shape(0), args.inputs[0].dtype);
}

// Kernels ------------------------------------------------------------------------------------

// Of sum and mean; max has a divisor of 1.
double divisor_of(const Tensor& x, int64_t dims, bool is_mean) {
  return is_mean ? static_cast<double>(Groups(x, dims).count()) : 1.0;
}

template <Reduction kOp, bool kMeanOf>
void reduce_kernel(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  const int64_t dims = args.attrs.as<ReduceAttrs>().dims;
  if (x.numel() == 0) {
    std::fill_n(static_cast<std::byte*>(y.raw_data()), y.numel() * size_of(y.dtype()),
                std::byte{0});
    return;
  }
  run_reduce(kOp, args.context, x, dims, divisor_of(x, dims, kMeanOf), y);
}

template <Reduction kOp, bool kMeanOf>
void reduce_reference(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  const int64_t dims = args.attrs.as<ReduceAttrs>().dims;
  const Groups groups(x, dims);
  const double divisor = divisor_of(x, dims, kMeanOf);
  visit_f32_f64(x.dtype(), "reduce", [&]<typename T>() {
    for (int64_t output = 0; output < y.numel(); ++output) {
      double result = 0;
      for (int64_t i = 0; i < groups.count(); ++i) {
        const double value = x.data<T>()[groups.offset(output, i)];
        if (kOp == Reduction::Sum) {
          result += value;
        } else if (i == 0 || value > result || std::isnan(value)) {
          result = std::isnan(result) ? result : value;
        }
      }
      y.data<T>()[output] = static_cast<T>(groups.count() == 0 ? 0.0 : result / divisor);
    }
  });
}

void argmax_kernel(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  if (x.numel() > 0) run_argmax(args.context, x, y.numel(), x.dim(-1), y);
}

void argmax_reference(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  const int64_t width = x.dim(-1);
  visit_f32_f64(x.dtype(), "argmax", [&]<typename T>() {
    for (int64_t row = 0; row < y.numel(); ++row) {
      const T* values = x.data<T>() + row * width;
      int64_t best = 0;
      for (int64_t i = 1; i < width && !std::isnan(values[best]); ++i)
        if (values[i] > values[best] || std::isnan(values[i])) best = i;
      y.data<int64_t>()[row] = best;
    }
  });
}

// dx = dy / number of maxima, at each maximum of the output's own elements.
void max_backward_kernel(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.inputs[1], &dy = args.inputs[2];
  const Groups groups(x, args.attrs.as<ReduceAttrs>().dims);
  const StridedLoop<1> elements(groups.reduced, {groups.reduced_strides});
  const int64_t step = elements.steps()[0], width = elements.width(), rows = elements.rows();
  if (x.numel() == 0) return;
  visit_float(x.dtype(), "max_backward", [&]<typename T>() {
    using Number = Compute<T>;
    auto spread = [&](int64_t output) {
      const int64_t base = strided_offset(output, groups.kept, groups.kept_strides);
      const T* values = x.data<T>() + base;
      T* dx = args.outputs[0].data<T>() + base;
      const Number largest = widen(y.data<T>()[output]);
      int64_t count = 0;
      elements.for_rows(0, rows, [&](const std::array<int64_t, 1>& at) {
        for (int64_t i = 0; i < width; ++i) count += widen(values[at[0] + i * step]) == largest;
      });
      const T share =
          count == 0 ? T{} : narrow<T>(widen(dy.data<T>()[output]) / static_cast<Number>(count));
      elements.for_rows(0, rows, [&](const std::array<int64_t, 1>& at) {
        for (int64_t i = 0; i < width; ++i) {
          const int64_t j = at[0] + i * step;
          dx[j] = widen(values[j]) == largest ? share : T{};
        }
      });
    };
    args.context.parallel_for(y.numel(), elementwise_grain(y.numel(), groups.count()),
                              [&](int64_t begin, int64_t end) {
                                for (int64_t output = begin; output < end; ++output) spread(output);
                              });
  });
}

// Gradients ----------------------------------------------------------------------------------

// dy spread over the dims that were reduced.
Tensor spread_back(const Tensor& dy, const Tensor& x, int64_t dims) {
  return broadcast_to(reshape(cast(dy, x.dtype()), keepdim_shape(x.dims(), dims)), x.dims());
}

void sum_backward(const BackwardArgs& args) {
  args.grad_inputs[0] =
      spread_back(args.grad_outputs[0], args.inputs[0], args.attrs.as<ReduceAttrs>().dims);
}

void mean_backward(const BackwardArgs& args) {
  const int64_t dims = args.attrs.as<ReduceAttrs>().dims;
  const DimShape shape = args.inputs[0].dims();
  Dim count = 1;
  for (int i = 0; i < shape.size(); ++i)
    if (is_reduced(dims, i)) count = count * shape[i];
  const Tensor dy = apply(kShare, {args.grad_outputs[0]}, CountAttrs{count})[0];
  args.grad_inputs[0] = spread_back(dy, args.inputs[0], dims);
}

void infer_share(const InferArgs& args) {
  args.require_same_float({0});
  args.require(could_be_ordered(0, args.attrs.as<CountAttrs>().count),
               "count must not be negative");
  args.add_output(args.shape(0), args.inputs[0].dtype);
}

// `scale`, by a factor that is known only now.
template <Kernel OpDef::*kKernel>
void share_kernel(const KernelArgs& args) {
  const int64_t count = args.attrs.as<CountAttrs>().count.number();
  const double factor = count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
  (kScale.*kKernel)({args.context, args.inputs, args.outputs, ScaleAttrs{factor}});
}

void max_backward(const BackwardArgs& args) {
  args.grad_inputs[0] =
      apply(kMaxBackward, {args.inputs[0], args.outputs[0], args.grad_outputs[0]}, args.attrs)[0];
}

constexpr OpDef reduce_op(const char* name, Kernel cpu, Kernel reference, Backward backward) {
  return {.name = name,
          .input_names = kNames,
          .infer = infer_reduce,
          .parse_attrs = Attrs::parse<ReduceAttrs>,
          .cpu = cpu,
          .reference = reference,
          .backward = backward,
          .fusion = Fusion::Reduction,
          .cost = streaming_cost<1>};
}

constexpr OpDef max_op() {
  OpDef op = reduce_op("max", reduce_kernel<Reduction::Max, false>,
                       reduce_reference<Reduction::Max, false>, max_backward);
  op.saved_inputs = bit(0);
  op.saved_outputs = bit(0);
  return op;
}

Tensor apply_reduce(const OpDef& op, const Tensor& x, int64_t dims, bool keepdim,
                    bool wide = false) {
  const int64_t every = (int64_t{1} << x.num_dims()) - 1;
  return apply(op, {x}, ReduceAttrs{dims == kAllDims ? every : dims, keepdim, wide})[0];
}

}  // namespace

constinit const OpDef kSum = reduce_op("sum", reduce_kernel<Reduction::Sum, false>,
                                       reduce_reference<Reduction::Sum, false>, sum_backward);
constinit const OpDef kMean = reduce_op("mean", reduce_kernel<Reduction::Sum, true>,
                                        reduce_reference<Reduction::Sum, true>, mean_backward);
constinit const OpDef kMax = max_op();
constinit const OpDef kArgmax{.name = "argmax",
                              .input_names = kNames,
                              .infer = infer_argmax,
                              .cpu = argmax_kernel,
                              .reference = argmax_reference,
                              .fusion = Fusion::Reduction,
                              .cost = streaming_cost<1>};
constinit const OpDef kShare{.name = "share",
                             .input_names = kNames,
                             .infer = infer_share,
                             .parse_attrs = Attrs::parse<CountAttrs>,
                             .cpu = share_kernel<&OpDef::cpu>,
                             .reference = share_kernel<&OpDef::reference>,
                             .fusion = Fusion::Elementwise,
                             .cost = streaming_cost<1>};
constinit const OpDef kMaxBackward{.name = "max_backward",
                                   .input_names = kMaxBackwardNames,
                                   .infer = infer_max_backward,
                                   .parse_attrs = Attrs::parse<ReduceAttrs>,
                                   .cpu = max_backward_kernel,
                                   .reference = max_backward_kernel,
                                   .cost = streaming_cost<2>};

Tensor sum(const Tensor& x, int64_t dims, bool keepdim, bool wide) {
  return apply_reduce(kSum, x, dims, keepdim, wide);
}
Tensor mean(const Tensor& x, int64_t dims, bool keepdim) {
  return apply_reduce(kMean, x, dims, keepdim);
}
Tensor max(const Tensor& x, int64_t dims, bool keepdim) {
  return apply_reduce(kMax, x, dims, keepdim);
}
Tensor argmax(const Tensor& x) { return apply(kArgmax, {x}, NoAttrs{})[0]; }

}  // namespace obelisk::ops
