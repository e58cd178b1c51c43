#include "ops/matmul/matmul.h"

#include "ops/layout/layout.h"
#include "ops/reduce/reduce.h"

namespace obelisk::ops {
namespace {

// Shape rule -----------------------------------------------------------------------------------

// A shape as leading dims and a matrix.
struct MatrixShape {
  explicit MatrixShape(const DimShape& shape) {
    for (int i = 0; i + 2 < shape.size(); ++i) leading.push_back(shape[i]);
    if (shape.size() > 1) rows = shape[shape.size() - 2];
    columns = shape.last();
  }
  DimShape leading;
  Dim rows = 1, columns;
};

DimShape product_shape(const InferArgs& args, const DimShape& a_shape, const DimShape& b_shape) {
  const auto& attrs = args.attrs.as<MatmulAttrs>();
  args.require(a_shape.size() >= (attrs.transpose_a ? 2 : 1), "a must be a matrix, or one row");
  args.require(b_shape.size() >= 2, "b must have at least two dims");
  const MatrixShape a(a_shape), b(b_shape);
  args.require((attrs.transpose_a ? a.rows : a.columns) == (attrs.transpose_b ? b.columns : b.rows),
               "inner dims of a and b must be equal");
  args.require(a.leading == b.leading || a.leading.empty() || b.leading.empty(),
               "leading dims of a and b must be equal, or one of them has none");
  args.require(!attrs.sum_leading || a.leading == b.leading,
               "leading dims of a and b must be equal when they are summed");
  DimShape result;
  if (!attrs.sum_leading) result = a.leading.empty() ? b.leading : a.leading;
  const bool one_row = a_shape.size() == 1 && !attrs.transpose_a && result.empty();
  if (!one_row) result.push_back(attrs.transpose_a ? a.columns : a.rows);
  result.push_back(attrs.transpose_b ? b.rows : b.columns);
  return result;
}

void infer(const InferArgs& args) {
  args.require_same_float({0, 1, 2});
  const DimShape result = product_shape(args, args.shape(0), args.shape(1));
  args.require(!args.inputs[2].defined || args.shape(2) == DimShape{result.last()},
               "bias must be as long as the last dim of the result");
  args.add_output(result, args.inputs[0].dtype);
}

void infer_accumulate(const InferArgs& args) {
  args.require_same_float_into(0, {1, 2});
  args.require(args.shape(0) == product_shape(args, args.shape(1), args.shape(2)),
               "destination must have the shape of the product");
}

// Reference ------------------------------------------------------------------------------------

// Element [row, column] of matrix `index` of x, or of its transpose.
struct Reader {
  Reader(const Tensor& x, bool transposed_in) : x(x), transposed(transposed_in) {
    dims = x.num_dims();
    for (int i = 0; i + 2 < dims; ++i) count *= x.dim(i);
    rows = dims > 1 ? x.dim(-2) : 1;
    columns = x.dim(-1);
    if (transposed) std::swap(rows, columns);
  }

  template <typename T>
  double at(int64_t index, int64_t row, int64_t column) const {
    if (transposed) std::swap(row, column);
    int64_t offset = column + (dims > 1 ? row * x.strides()[dims - 2] : 0);
    for (int i = dims - 3; i >= 0; --i) {
      offset += index % x.dim(i) * x.strides()[i];
      index /= x.dim(i);
    }
    return static_cast<double>(x.data<T>()[offset]);
  }

  const Tensor& x;
  bool transposed;
  int dims = 0;
  int64_t count = 1, rows = 1, columns = 1;
};

template <typename T>
double dot(const Reader& a, const Reader& b, int64_t index, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < a.columns; ++k) sum += a.at<T>(index, i, k) * b.at<T>(index, k, j);
  return sum;
}

void multiply_reference(const Tensor& a_tensor, const Tensor& b_tensor, const Tensor& c,
                        const Tensor& bias, const MatmulAttrs& attrs, bool accumulate) {
  visit_f32_f64(c.dtype(), "matmul", [&]<typename T>() {
    const Reader a(a_tensor, attrs.transpose_a), b(b_tensor, attrs.transpose_b);
    const int64_t count = a.dims > 2 ? a.count : b.count;
    const int64_t matrices = attrs.sum_leading ? 1 : count;
    T* out = c.data<T>();
    for (int64_t index = 0; index < matrices; ++index) {
      for (int64_t i = 0; i < a.rows; ++i) {
        for (int64_t j = 0; j < b.columns; ++j, ++out) {
          double sum = bias.defined() ? static_cast<double>(bias.data<T>()[j]) : 0.0;
          if (accumulate) sum += static_cast<double>(*out);
          if (attrs.sum_leading) {
            for (int64_t each = 0; each < count; ++each) sum += dot<T>(a, b, each, i, j);
          } else {
            sum += dot<T>(a, b, index, i, j);
          }
          *out = static_cast<T>(sum);
        }
      }
    }
  });
}

void reference(const KernelArgs& args) {
  multiply_reference(args.inputs[0], args.inputs[1], args.outputs[0], args.inputs[2],
                     args.attrs.as<MatmulAttrs>(), false);
}

void accumulate_reference(const KernelArgs& args) {
  multiply_reference(args.inputs[1], args.inputs[2], args.inputs[0], Tensor(),
                     args.attrs.as<MatmulAttrs>(), true);
}

// Gradients ------------------------------------------------------------------------------------

// The gradient of one operand is a product again: into its buffer if there is one.
void deliver(const BackwardArgs& args, int input, const Tensor& left, const Tensor& right,
             MatmulAttrs attrs) {
  // An operand without leading dims served them all.
  attrs.sum_leading = args.inputs[input].num_dims() <= 2;
  const Tensor& destination = args.destination(input);
  if (destination.defined())
    apply(kMatmulAccumulate, {destination, left, right}, attrs);
  else
    args.grad_inputs[input] = apply(kMatmul, {left, right, Tensor()}, attrs)[0];
}

// A row vector as a matrix.
Tensor as_matrix(const Tensor& x) {
  return x.num_dims() > 1 ? x : reshape(x, DimShape{1, x.dims()[0]});
}

void backward(const BackwardArgs& args) {
  const auto& attrs = args.attrs.as<MatmulAttrs>();
  const Tensor &a = args.inputs[0], &b = args.inputs[1], &g = args.grad_outputs[0];
  if (!g.defined()) return;
  const bool ta = attrs.transpose_a, tb = attrs.transpose_b;
  if (args.needs(0)) {
    if (ta)
      deliver(args, 0, b, g, {.transpose_a = tb, .transpose_b = true});
    else
      deliver(args, 0, g, b, {.transpose_b = !tb});
  }
  if (args.needs(1)) {
    if (tb)
      deliver(args, 1, as_matrix(g), as_matrix(a), {.transpose_a = true, .transpose_b = ta});
    else
      deliver(args, 1, as_matrix(a), as_matrix(g), {.transpose_a = !ta});
  }
  // Where sums of bf16 gradients are kept in f32, so is this one.
  const bool wide = args.destination(2).defined() && args.destination(2).dtype() != g.dtype();
  const int64_t leading = static_cast<int64_t>(bit(g.num_dims() - 1)) - 1;
  if (args.needs(2)) args.grad_inputs[2] = sum(g, leading, false, wide);
}

// Cost -----------------------------------------------------------------------------------------

double flops(const TensorSpec& a, const TensorSpec& b, const MatmulAttrs& attrs) {
  const MatrixShape left(a.shape), right(b.shape);
  const DimShape& leading = left.leading.empty() ? right.leading : left.leading;
  const Dim columns = attrs.transpose_b ? right.rows : right.columns;
  return 2.0 *
         static_cast<double>((product(leading) * left.rows * left.columns * columns).number());
}

Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
          const Attrs& attrs) {
  return {flops(inputs[0], inputs[1], attrs.as<MatmulAttrs>()), bytes_of(inputs),
          bytes_of(outputs)};
}

Cost accumulate_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                     const Attrs& attrs) {
  return {flops(inputs[1], inputs[2], attrs.as<MatmulAttrs>()), bytes_of(inputs),
          bytes_of(inputs.first(1))};
}

constexpr const char* kNames[] = {"a", "b", "bias"};
constexpr const char* kAccumulateNames[] = {"destination", "a", "b"};

}  // namespace

constinit const OpDef kMatmul{.name = "matmul",
                              .input_names = kNames,
                              .infer = infer,
                              .parse_attrs = Attrs::parse<MatmulAttrs>,
                              .cpu = matmul_cpu,
                              .reference = reference,
                              .backward = backward,
                              .saved_inputs = bits(0, 1),
                              .strided_inputs = bits(0, 1),
                              .cost = cost};

constinit const OpDef kMatmulAccumulate{.name = "matmul_accumulate",
                                        .input_names = kAccumulateNames,
                                        .infer = infer_accumulate,
                                        .parse_attrs = Attrs::parse<MatmulAttrs>,
                                        .cpu = matmul_accumulate_cpu,
                                        .reference = accumulate_reference,
                                        .writes = bit(0),
                                        .strided_inputs = bits(1, 2),
                                        .cost = accumulate_cost};

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulAttrs& attrs, const Tensor& bias) {
  return apply(kMatmul, {a, b, bias}, attrs)[0];
}

void matmul_accumulate(const Tensor& destination, const Tensor& a, const Tensor& b,
                       const MatmulAttrs& attrs) {
  apply(kMatmulAccumulate, {destination, a, b}, attrs);
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  return matmul(x, w, {.transpose_b = true}, bias);
}

}  // namespace obelisk::ops
