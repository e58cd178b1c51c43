// reshape, slice, split: shape rules, views, gradients.
#include <numeric>

#include "framework/op/full.h"
#include "ops/elementwise/elementwise.h"
#include "ops/layout/layout.h"

namespace obelisk::ops {
namespace {

constexpr const char* kNames[] = {"x"};

bool valid_dim(int64_t dim, const DimShape& shape) { return dim >= 0 && dim < shape.size(); }

// A negative dim counts from the end; an impossible one is left for the shape rule to refuse.
int64_t positive_dim(const Tensor& x, int dim) { return dim < 0 ? dim + x.num_dims() : dim; }

// reshape ------------------------------------------------------------------------------------

void infer_reshape(const InferArgs& args) {
  const DimShape& shape = args.attrs.as<ReshapeAttrs>().shape;
  args.require(product(args.shape(0)) == product(shape), "number of elements must stay the same");
  args.add_output(shape, args.inputs[0].dtype);
}

// The strides that show x's elements under `shape`, when there are such and rows stay dense.
//
// Both shapes are cut into the shortest runs of dims with equal products; a run of x's dims must be
// one stretch of memory steps, and the new dims subdivide it.
bool view_strides(const Tensor& x, const Shape& shape, Strides& strides) {
  strides = contiguous_strides(shape);
  if (x.is_contiguous() || x.numel() == 0) return true;
  Shape old_dims;
  Strides old_strides;
  for (int i = 0; i < x.num_dims(); ++i) {
    if (x.shape()[i] == 1) continue;
    old_dims.push_back(x.shape()[i]);
    old_strides.push_back(x.strides()[i]);
  }
  int old_begin = 0, new_begin = 0;
  while (old_begin < old_dims.size()) {
    int old_end = old_begin + 1, new_end = new_begin + 1;
    int64_t old_product = old_dims[old_begin], new_product = shape[new_begin];
    while (old_product != new_product) {
      if (old_product < new_product) {
        old_product *= old_dims[old_end++];
      } else {
        new_product *= shape[new_end++];
      }
    }
    for (int i = old_begin; i + 1 < old_end; ++i)
      if (old_strides[i] != old_strides[i + 1] * old_dims[i + 1]) return false;
    int64_t stride = old_strides[old_end - 1];
    for (int i = new_end - 1; i >= new_begin; --i) {
      strides[i] = stride;
      stride *= shape[i];
    }
    old_begin = old_end;
    new_begin = new_end;
  }
  return shape.empty() || shape.last() == 1 || strides.last() == 1;
}

void view_reshape(const Tensor& x, const Attrs& attrs, TensorList& outputs) {
  const Shape shape = to_numbers(attrs.as<ReshapeAttrs>().shape);
  Strides strides;
  OBELISK_CHECK(view_strides(x, shape, strides), ShapeError,
                "reshape: x's memory must allow a view; got shape {} with strides {} as {}; use "
                "ops::contiguous",
                to_string(x.shape()), to_string(x.strides()), to_string(shape));
  outputs.push_back(x.alias(shape, strides, 0));
}

void reshape_backward(const BackwardArgs& args) {
  args.grad_inputs[0] = reshape(args.grad_outputs[0], args.inputs[0].dims());
}

// slice --------------------------------------------------------------------------------------

void infer_slice(const InferArgs& args) {
  const auto& [dim, begin, end] = args.attrs.as<SliceAttrs>();
  const DimShape& shape = args.shape(0);
  args.require(valid_dim(dim, shape) && could_be_ordered(0, begin) &&
                   could_be_ordered(begin, end) &&
                   could_be_ordered(end, shape[static_cast<int>(dim)]),
               "must satisfy 0 <= begin <= end <= size of an existing dim");
  args.add_output(shape.with(static_cast<int>(dim), end - begin), args.inputs[0].dtype);
}

Tensor piece_of(const Tensor& x, int64_t dim, int64_t begin, int64_t size) {
  const int d = static_cast<int>(dim);
  // An empty view begins where x does: no address beyond its bytes.
  const int64_t offset = size == 0 ? 0 : begin * x.strides()[d];
  return x.alias(x.shape().with(d, size), x.strides(), offset);
}

void view_slice(const Tensor& x, const Attrs& attrs, TensorList& outputs) {
  const auto& [dim, begin, end] = attrs.as<SliceAttrs>();
  outputs.push_back(piece_of(x, dim, begin.number(), (end - begin).number()));
}

void slice_backward(const BackwardArgs& args) {
  const auto& [dim, begin, end] = args.attrs.as<SliceAttrs>();
  const Tensor& dy = args.grad_outputs[0];
  if (args.destination(0).defined()) {
    accumulate(slice(args.destination(0), static_cast<int>(dim), begin, end), dy);
    return;
  }
  const Dim size = args.inputs[0].dims()[static_cast<int>(dim)];
  args.grad_inputs[0] = pad(dy, static_cast<int>(dim), begin, size - end);
}

// split --------------------------------------------------------------------------------------

void infer_split(const InferArgs& args) {
  const auto& [dim, sizes] = args.attrs.as<SplitAttrs>();
  const DimShape& shape = args.shape(0);
  const bool positive =
      std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
  args.require(valid_dim(dim, shape) && positive &&
                   shape[static_cast<int>(dim)] ==
                       Dim(std::accumulate(sizes.begin(), sizes.end(), int64_t{0})),
               "sizes must add up to the size of an existing dim");
  for (int64_t size : sizes)
    args.add_output(shape.with(static_cast<int>(dim), size), args.inputs[0].dtype);
}

void view_split(const Tensor& x, const Attrs& attrs, TensorList& outputs) {
  const auto& [dim, sizes] = attrs.as<SplitAttrs>();
  int64_t begin = 0;
  for (int64_t size : sizes) {
    outputs.push_back(piece_of(x, dim, begin, size));
    begin += size;
  }
}

void split_backward(const BackwardArgs& args) {
  const int dim = static_cast<int>(args.attrs.as<SplitAttrs>().dim);
  if (args.destination(0).defined()) {
    Dim begin = 0;
    for (size_t i = 0; i < args.outputs.size(); ++i) {
      const Dim end = begin + args.outputs[i].dims()[dim];
      if (args.grad_outputs[i].defined())
        accumulate(slice(args.destination(0), dim, begin, end), args.grad_outputs[i]);
      begin = end;
    }
    return;
  }
  TensorList pieces;
  for (size_t i = 0; i < args.outputs.size(); ++i)
    pieces.push_back(args.grad_outputs[i].defined() ? args.grad_outputs[i]
                                                    : zeros_like(args.outputs[i]));
  args.grad_inputs[0] = concat(pieces, dim);
}

}  // namespace

constinit const OpDef kReshape{.name = "reshape",
                               .input_names = kNames,
                               .infer = infer_reshape,
                               .parse_attrs = Attrs::parse<ReshapeAttrs>,
                               .view = view_reshape,
                               .backward = reshape_backward,
                               .fusion = Fusion::View};
constinit const OpDef kSlice{.name = "slice",
                             .input_names = kNames,
                             .infer = infer_slice,
                             .parse_attrs = Attrs::parse<SliceAttrs>,
                             .view = view_slice,
                             .backward = slice_backward,
                             .fusion = Fusion::View};
constinit const OpDef kSplit{.name = "split",
                             .input_names = kNames,
                             .infer = infer_split,
                             .parse_attrs = Attrs::parse<SplitAttrs>,
                             .view = view_split,
                             .backward = split_backward,
                             .fusion = Fusion::View};

Tensor reshape(const Tensor& x, const Shape& shape) {
  Shape resolved = shape;
  int64_t known = 1;
  int unknown = -1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = i;
    } else {
      OBELISK_CHECK(shape[i] >= 0, ShapeError,
                    "reshape: dims must not be negative, but for one -1; got {}", to_string(shape));
      known *= shape[i];
    }
  }
  if (unknown >= 0) {
    OBELISK_CHECK(known > 0 && x.numel() % known == 0, ShapeError,
                  "reshape: the dims beside -1 must divide the number of elements; got x {}, shape "
                  "{}",
                  to_string(x.shape()), to_string(shape));
    resolved[unknown] = x.numel() / known;
  }
  Strides strides;
  const bool viewable = num_elements(resolved) != x.numel() || view_strides(x, resolved, strides);
  return apply(kReshape, {viewable ? x : copy(x)}, ReshapeAttrs{to_dims(resolved)})[0];
}

Tensor reshape(const Tensor& x, const DimShape& shape) {
  if (is_numeric(shape) && is_numeric(x.dims())) return reshape(x, to_numbers(shape));
  // Whether other strides allow a view depends on sizes that are not known yet.
  const bool viewable = x.is_contiguous();
  return apply(kReshape, {viewable ? x : copy(x)}, ReshapeAttrs{shape})[0];
}

Tensor slice(const Tensor& x, int dim, Dim begin, Dim end) {
  return apply(kSlice, {x}, SliceAttrs{positive_dim(x, dim), begin, end})[0];
}

TensorList split(const Tensor& x, std::span<const int64_t> sizes, int dim) {
  const int64_t d = positive_dim(x, dim);
  if (sizes.size() <= kMaxDims) return apply(kSplit, {x}, SplitAttrs{d, Shape(sizes)});
  // More pieces than attributes hold: split into groups, and the groups into pieces.
  const size_t group = (sizes.size() + kMaxDims - 1) / kMaxDims;
  Shape group_sizes;
  for (size_t i = 0; i < sizes.size(); i += group) {
    const auto members = sizes.subspan(i, std::min(group, sizes.size() - i));
    group_sizes.push_back(std::accumulate(members.begin(), members.end(), int64_t{0}));
  }
  const TensorList groups = apply(kSplit, {x}, SplitAttrs{d, group_sizes});
  TensorList pieces;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto members = sizes.subspan(i * group, std::min(group, sizes.size() - i * group));
    for (const Tensor& piece : split(groups[i], members, static_cast<int>(d)))
      pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace obelisk::ops
