// copy, concat, permute, broadcast_to, pad: shape rules, kernels, gradients.
#include <algorithm>

#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/strided.h"
#include "ops/layout/copy_strided.h"
#include "ops/layout/layout.h"

namespace obelisk::ops {
namespace {

constexpr const char* kNames[] = {"x"};

bool valid_dim(int64_t dim, const DimShape& shape) { return dim >= 0 && dim < shape.size(); }
int64_t positive_dim(int num_dims, int dim) { return dim < 0 ? dim + num_dims : dim; }

// The part of y that starts `begin` elements into `dim` and has `shape`.
void* address_of(const Tensor& y, int64_t dim, int64_t begin) {
  const int64_t offset = begin * y.strides()[static_cast<int>(dim)];
  return static_cast<std::byte*>(y.raw_data()) + offset * static_cast<int64_t>(size_of(y.dtype()));
}

Cost copy_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
               const Attrs&) {
  return {0.0, bytes_of(inputs), bytes_of(outputs)};
}

// Plain loops: y[i] = x[index of i under x's strides in y's shape].
void reference_copy(const Tensor& x, const Strides& x_strides, void* y, const Shape& shape,
                    const Strides& y_strides) {
  visit_element_size(size_of(x.dtype()), [&]<typename T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(y);
    for (int64_t i = 0; i < num_elements(shape); ++i)
      to[strided_offset(i, shape, y_strides)] = from[strided_offset(i, shape, x_strides)];
  });
}

// copy ---------------------------------------------------------------------------------------

void infer_copy(const InferArgs& args) { args.add_output(args.shape(0), args.inputs[0].dtype); }

void copy_kernel(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  copy_strided(args.context, size_of(x.dtype()), x.shape(), x.raw_data(), x.strides(), y.raw_data(),
               y.strides());
}
void copy_reference(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  reference_copy(x, x.strides(), y.raw_data(), y.shape(), y.strides());
}

void copy_backward(const BackwardArgs& args) { args.grad_inputs[0] = args.grad_outputs[0]; }

// concat -------------------------------------------------------------------------------------

void infer_concat(const InferArgs& args) {
  OBELISK_CHECK(!args.inputs.empty(), ShapeError, "concat: needs at least one operand; got none");
  const int64_t dim = args.attrs.as<ConcatAttrs>().dim;
  args.require(valid_dim(dim, args.shape(0)), "dim must exist");
  const int d = static_cast<int>(dim);
  Dim total = 0;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const DimShape& shape = args.inputs[i].shape;
    args.require(args.inputs[i].dtype == args.inputs[0].dtype, "dtypes must be alike");
    args.require(
        shape.size() == args.shape(0).size() && shape.with(d, 0) == args.shape(0).with(d, 0),
        "all dims but the concatenated one must be alike");
    total = total + shape[d];
  }
  args.add_output(args.shape(0).with(d, total), args.inputs[0].dtype);
}

template <typename CopyPiece>
void concat_pieces(const KernelArgs& args, CopyPiece&& copy_piece) {
  const int64_t dim = args.attrs.as<ConcatAttrs>().dim;
  int64_t begin = 0;
  for (const Tensor& x : args.inputs) {
    if (x.numel() > 0) copy_piece(x, address_of(args.outputs[0], dim, begin));
    begin += x.shape()[static_cast<int>(dim)];
  }
}

// Contiguous operands: one pass over the result, its rows put together from theirs.
void concat_rows(const KernelArgs& args, int dim) {
  const Tensor& y = args.outputs[0];
  int64_t rows = 1;
  for (int i = 0; i < dim; ++i) rows *= y.shape()[i];
  if (y.numel() == 0) return;
  const auto element = static_cast<int64_t>(size_of(y.dtype()));
  const int64_t width = y.numel() / rows;
  auto* to = static_cast<std::byte*>(y.raw_data());
  args.context.parallel_for(rows, elementwise_grain(rows, width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::byte* at = to + row * width * element;
      for (const Tensor& x : args.inputs) {
        const int64_t bytes = x.numel() / rows * element;
        std::copy_n(static_cast<const std::byte*>(x.raw_data()) + row * bytes, bytes, at);
        at += bytes;
      }
    }
  });
}

void concat_kernel(const KernelArgs& args) {
  const Tensor& y = args.outputs[0];
  const auto dim = static_cast<int>(args.attrs.as<ConcatAttrs>().dim);
  const bool dense = std::all_of(args.inputs.begin(), args.inputs.end(),
                                 [](const Tensor& x) { return x.is_contiguous(); });
  // Operands joined in their first dim are whole blocks of the result.
  if (dense && num_elements(Shape(std::span(y.shape().begin(), dim))) > 1)
    return concat_rows(args, dim);
  concat_pieces(args, [&](const Tensor& x, void* to) {
    copy_strided(args.context, size_of(x.dtype()), x.shape(), x.raw_data(), x.strides(), to,
                 y.strides());
  });
}
void concat_reference(const KernelArgs& args) {
  concat_pieces(args, [&](const Tensor& x, void* to) {
    reference_copy(x, x.strides(), to, x.shape(), args.outputs[0].strides());
  });
}

void concat_backward(const BackwardArgs& args) {
  const int dim = static_cast<int>(args.attrs.as<ConcatAttrs>().dim);
  Dim begin = 0;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const Dim end = begin + args.inputs[i].dims()[dim];
    if (args.needs(static_cast<int>(i))) {
      const Tensor piece = slice(args.grad_outputs[0], dim, begin, end);
      // Accumulation reads strided rows; whoever else gets the piece wants it dense.
      if (args.destinations[i].defined()) {
        accumulate(args.destinations[i], piece);
      } else {
        args.grad_inputs[i] = contiguous(piece);
      }
    }
    begin = end;
  }
}

// permute ------------------------------------------------------------------------------------

void infer_permute(const InferArgs& args) {
  const Shape& order = args.attrs.as<PermuteAttrs>().order;
  const DimShape& shape = args.shape(0);
  uint32_t seen = 0;
  for (int64_t dim : order)
    if (valid_dim(dim, shape)) seen |= bit(static_cast<int>(dim));
  args.require(order.size() == shape.size() && seen == bit(shape.size()) - 1,
               "order must name every dim of x once");
  DimShape result;
  for (int64_t dim : order) result.push_back(shape[static_cast<int>(dim)]);
  args.add_output(result, args.inputs[0].dtype);
}

Strides permuted(const Strides& strides, const Shape& order) {
  Strides result;
  for (int64_t dim : order) result.push_back(strides[static_cast<int>(dim)]);
  return result;
}

void permute_kernel(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  copy_transposed(args.context, size_of(x.dtype()), y.shape(), x.raw_data(),
                  permuted(x.strides(), args.attrs.as<PermuteAttrs>().order), y.raw_data());
}
void permute_reference(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  reference_copy(x, permuted(x.strides(), args.attrs.as<PermuteAttrs>().order), y.raw_data(),
                 y.shape(), y.strides());
}

void permute_backward(const BackwardArgs& args) {
  const Shape& order = args.attrs.as<PermuteAttrs>().order;
  Shape inverse = order;
  for (int i = 0; i < order.size(); ++i) inverse[static_cast<int>(order[i])] = i;
  args.grad_inputs[0] = permute(args.grad_outputs[0], inverse);
}

// broadcast_to -------------------------------------------------------------------------------

void infer_broadcast_to(const InferArgs& args) {
  const DimShape& shape = args.attrs.as<BroadcastToAttrs>().shape;
  const DimShape& x = args.shape(0);
  const int missing = shape.size() - x.size();
  bool fits = missing >= 0;
  for (int i = 0; fits && i < x.size(); ++i) fits = x[i] == shape[i + missing] || x[i] == Dim(1);
  args.require(fits, "x must broadcast to the shape");
  args.add_output(shape, args.inputs[0].dtype);
}

void broadcast_to_kernel(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  copy_strided(args.context, size_of(x.dtype()), y.shape(), x.raw_data(),
               broadcast_strides(x, y.shape()), y.raw_data(), y.strides());
}
void broadcast_to_reference(const KernelArgs& args) {
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  reference_copy(x, broadcast_strides(x, y.shape()), y.raw_data(), y.shape(), y.strides());
}

void broadcast_to_backward(const BackwardArgs& args) {
  args.grad_inputs[0] = sum_to_shape(args.grad_outputs[0], args.inputs[0].dims());
}

// pad ----------------------------------------------------------------------------------------

void infer_pad(const InferArgs& args) {
  const auto& [dim, before, after] = args.attrs.as<PadAttrs>();
  args.require(
      valid_dim(dim, args.shape(0)) && could_be_ordered(0, before) && could_be_ordered(0, after),
      "must add a number of zeros that is not negative to an existing dim");
  const int d = static_cast<int>(dim);
  args.add_output(args.shape(0).with(d, args.shape(0)[d] + before + after), args.inputs[0].dtype);
}

void pad_kernel(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<PadAttrs>();
  const int64_t dim = attrs.dim, before = attrs.before.number(), after = attrs.after.number();
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  if (y.numel() == 0) return;
  const int d = static_cast<int>(dim);
  const size_t element = size_of(x.dtype());
  const int64_t size = x.shape()[d];
  if (before > 0)
    zero_strided(args.context, element, y.shape().with(d, before), y.raw_data(), y.strides());
  if (size > 0)
    copy_strided(args.context, element, x.shape(), x.raw_data(), x.strides(),
                 address_of(y, dim, before), y.strides());
  if (after > 0)
    zero_strided(args.context, element, y.shape().with(d, after), address_of(y, dim, before + size),
                 y.strides());
}
void pad_reference(const KernelArgs& args) {
  const auto& [dim, before, after] = args.attrs.as<PadAttrs>();
  const Tensor &x = args.inputs[0], &y = args.outputs[0];
  if (y.numel() == 0) return;
  std::fill_n(static_cast<std::byte*>(y.raw_data()), y.numel() * size_of(y.dtype()), std::byte{0});
  if (x.numel() > 0)
    reference_copy(x, x.strides(), address_of(y, dim, before.number()), x.shape(), y.strides());
}

void pad_backward(const BackwardArgs& args) {
  const auto& [dim, before, after] = args.attrs.as<PadAttrs>();
  const int d = static_cast<int>(dim);
  args.grad_inputs[0] =
      contiguous(slice(args.grad_outputs[0], d, before, before + args.inputs[0].dims()[d]));
}

constexpr OpDef copying_op(const char* name, Infer infer, Kernel cpu, Kernel reference,
                           Backward backward, decltype(OpDef::parse_attrs) parse_attrs,
                           Fusion fusion = Fusion::Opaque) {
  return {.name = name,
          .input_names = kNames,
          .infer = infer,
          .parse_attrs = parse_attrs,
          .cpu = cpu,
          .reference = reference,
          .backward = backward,
          .strided_inputs = bit(0),
          .fusion = fusion,
          .cost = copy_cost};
}

}  // namespace

constinit const OpDef kCopy = copying_op("copy", infer_copy, copy_kernel, copy_reference,
                                         copy_backward, Attrs::parse<NoAttrs>, Fusion::Elementwise);
constinit const OpDef kPermute =
    copying_op("permute", infer_permute, permute_kernel, permute_reference, permute_backward,
               Attrs::parse<PermuteAttrs>);
constinit const OpDef kBroadcastTo =
    copying_op("broadcast_to", infer_broadcast_to, broadcast_to_kernel, broadcast_to_reference,
               broadcast_to_backward, Attrs::parse<BroadcastToAttrs>, Fusion::Broadcast);
constinit const OpDef kPad =
    copying_op("pad", infer_pad, pad_kernel, pad_reference, pad_backward, Attrs::parse<PadAttrs>);
constinit const OpDef kConcat{.name = "concat",
                              .input_names = kNames,
                              .infer = infer_concat,
                              .parse_attrs = Attrs::parse<ConcatAttrs>,
                              .cpu = concat_kernel,
                              .reference = concat_reference,
                              .backward = concat_backward,
                              .strided_inputs = ~uint32_t{0},
                              .cost = copy_cost};

Tensor copy(const Tensor& x) { return apply(kCopy, {x}, NoAttrs{})[0]; }
Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : copy(x); }

Tensor concat(std::span<const Tensor> operands, int dim) {
  // OpDef's masks have a bit for each of 32 operands; longer lists are joined in groups first.
  constexpr size_t kMaxOperands = 32;
  const int num_dims = operands.empty() ? 0 : operands[0].num_dims();
  const ConcatAttrs attrs{positive_dim(num_dims, dim)};
  if (operands.size() <= kMaxOperands) return apply(kConcat, operands, attrs)[0];
  const size_t group = (operands.size() + kMaxOperands - 1) / kMaxOperands;
  TensorList groups;
  for (size_t i = 0; i < operands.size(); i += group)
    groups.push_back(concat(operands.subspan(i, std::min(group, operands.size() - i)), dim));
  return concat(groups, dim);
}

Tensor permute(const Tensor& x, const Shape& order) {
  return apply(kPermute, {x}, PermuteAttrs{order})[0];
}

Tensor transpose(const Tensor& x, int dim_a, int dim_b) {
  const int64_t a = positive_dim(x.num_dims(), dim_a), b = positive_dim(x.num_dims(), dim_b);
  OBELISK_CHECK(a >= 0 && a < x.num_dims() && b >= 0 && b < x.num_dims(), ShapeError,
                "transpose: dims must exist; got {} and {} of x {}", dim_a, dim_b,
                to_string(x.shape()));
  Shape order;
  for (int i = 0; i < x.num_dims(); ++i) order.push_back(i == a ? b : i == b ? a : i);
  return permute(x, order);
}

Tensor broadcast_to(const Tensor& x, const DimShape& shape) {
  return apply(kBroadcastTo, {x}, BroadcastToAttrs{shape})[0];
}

Tensor pad(const Tensor& x, int dim, Dim before, Dim after) {
  return apply(kPad, {x}, PadAttrs{positive_dim(x.num_dims(), dim), before, after})[0];
}

}  // namespace obelisk::ops
