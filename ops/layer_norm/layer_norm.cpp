#include "ops/layer_norm/layer_norm.h"

#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace obelisk::ops {
namespace {

DimShape leading_dims(const InferArgs& args, const DimShape& x) {
  args.require(!x.empty(), "x must have at least one dim");
  return DimShape(std::span<const Dim>(x.begin(), static_cast<size_t>(x.size() - 1)));
}

// w and b at `weight` and `weight + 1`.
void check_weights(const InferArgs& args, int weight) {
  const DimShape row = {args.shape(0).last()};
  args.require(args.shape(weight) == row, "w must be 1-D and as long as x's last dim");
  args.require(!args.inputs[weight + 1].defined || args.shape(weight + 1) == row,
               "b must be 1-D and as long as x's last dim");
  args.require(args.attrs.as<LayerNormAttrs>().eps >= 0, "eps must not be negative");
}

void infer(const InferArgs& args) {
  const DimShape rows = leading_dims(args, args.shape(0));
  args.require_same_float({0, 1, 2});
  check_weights(args, 1);
  const DType dtype = args.inputs[0].dtype;
  args.add_output(args.shape(0), dtype);
  for (int i = 0; i < 2; ++i) args.add_output(rows, sum_dtype(dtype));
}

void infer_add(const InferArgs& args) {
  const DimShape rows = leading_dims(args, args.shape(0));
  args.require_same_float({0, 1, 2, 3});
  args.require(args.shape(0) == args.shape(1), "x and residual must have the same shape");
  check_weights(args, 2);
  const DType dtype = args.inputs[0].dtype;
  for (int i = 0; i < 2; ++i) args.add_output(args.shape(0), dtype);
  for (int i = 0; i < 2; ++i) args.add_output(rows, sum_dtype(dtype));
}

void infer_backward(const InferArgs& args) {
  const DimShape& x = args.shape(2);
  const DimShape rows = leading_dims(args, x);
  args.require_same_float({0, 1, 2, 3});
  args.require_sums({4, 5}, 2);
  args.require(args.shape(0) == x && (!args.inputs[1].defined || args.shape(1) == x),
               "dy, dsum and x must have the same shape");
  args.require(args.shape(3) == DimShape{x.last()}, "w must be 1-D and as long as x's last dim");
  args.require(args.shape(4) == rows && args.shape(5) == rows,
               "mean and rstd must have x's leading dims");
  const DType dtype = args.inputs[2].dtype;
  args.add_output(x, dtype);
  args.add_output({x.last()}, sum_dtype(dtype));
  if (args.attrs.as<LayerNormBackwardAttrs>().with_bias)
    args.add_output({x.last()}, sum_dtype(dtype));
}

// One row; b may be null.
template <typename T>
void normalise_row(const T* x, const T* w, const T* b, int64_t width, double eps, T* y, T* mean_out,
                   T* rstd_out) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < width; ++i) sum += x[i];
  const double mean = width > 0 ? sum / static_cast<double>(width) : 0.0;
  for (int64_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double variance = width > 0 ? squares / static_cast<double>(width) : 0.0;
  const double rstd = 1.0 / std::sqrt(variance + eps);
  for (int64_t i = 0; i < width; ++i)
    y[i] = static_cast<T>((x[i] - mean) * rstd * w[i] + (b != nullptr ? b[i] : T{0}));
  *mean_out = static_cast<T>(mean);
  *rstd_out = static_cast<T>(rstd);
}

template <typename T>
const T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

void layer_norm_reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "layer_norm", [&]<typename T>() {
    const int64_t width = args.inputs[0].shape().last();
    for (int64_t r = 0; r < args.outputs[1].numel(); ++r)
      normalise_row(args.inputs[0].data<T>() + r * width, args.inputs[1].data<T>(),
                    data_or_null<T>(args.inputs[2]), width, args.attrs.as<LayerNormAttrs>().eps,
                    args.outputs[0].data<T>() + r * width, args.outputs[1].data<T>() + r,
                    args.outputs[2].data<T>() + r);
  });
}

void add_layer_norm_reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "add_layer_norm", [&]<typename T>() {
    const int64_t width = args.inputs[0].shape().last();
    T* const sum = args.outputs[1].data<T>();
    for (int64_t i = 0; i < args.outputs[1].numel(); ++i)
      sum[i] = args.inputs[0].data<T>()[i] + args.inputs[1].data<T>()[i];
    for (int64_t r = 0; r < args.outputs[2].numel(); ++r)
      normalise_row(sum + r * width, args.inputs[2].data<T>(), data_or_null<T>(args.inputs[3]),
                    width, args.attrs.as<LayerNormAttrs>().eps,
                    args.outputs[0].data<T>() + r * width, args.outputs[2].data<T>() + r,
                    args.outputs[3].data<T>() + r);
  });
}

template <typename T>
void reference_backward(const KernelArgs& args) {
  const T* dy = args.inputs[0].data<T>();
  const T* dsum = data_or_null<T>(args.inputs[1]);
  const T* x = args.inputs[2].data<T>();
  const T* w = args.inputs[3].data<T>();
  const T* mean = args.inputs[4].data<T>();
  const T* rstd = args.inputs[5].data<T>();
  T* dx = args.outputs[0].data<T>();
  const int64_t width = args.inputs[2].shape().last(), rows = args.inputs[4].numel();
  const auto normalised = [&](int64_t r, int64_t i) {
    return (double(x[r * width + i]) - double(mean[r])) * double(rstd[r]);
  };
  for (int64_t r = 0; r < rows; ++r) {
    double g_mean = 0, gn_mean = 0;
    for (int64_t i = 0; i < width; ++i) {
      const double g = double(dy[r * width + i]) * double(w[i]);
      g_mean += g / static_cast<double>(width);
      gn_mean += g * normalised(r, i) / static_cast<double>(width);
    }
    for (int64_t i = 0; i < width; ++i) {
      const double g = double(dy[r * width + i]) * double(w[i]);
      const double gradient = double(rstd[r]) * (g - g_mean - normalised(r, i) * gn_mean);
      dx[r * width + i] =
          static_cast<T>(gradient + (dsum != nullptr ? double(dsum[r * width + i]) : 0.0));
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    double dw = 0, db = 0;
    for (int64_t r = 0; r < rows; ++r) {
      dw += double(dy[r * width + i]) * normalised(r, i);
      db += double(dy[r * width + i]);
    }
    args.outputs[1].data<T>()[i] = static_cast<T>(dw);
    if (args.outputs.size() > 2) args.outputs[2].data<T>()[i] = static_cast<T>(db);
  }
}

void layer_norm_backward_reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[2].dtype(), "layer_norm_backward",
                [&]<typename T>() { reference_backward<T>(args); });
}

void check_statistics_unused(const BackwardArgs& args, const char* op, size_t first) {
  for (size_t i = first; i < args.grad_outputs.size(); ++i)
    OBELISK_CHECK(!args.grad_outputs[i].defined(), Bug,
                  "bug: {}: mean and rstd have no gradient; they are kept for backward only", op);
}

void backward(const BackwardArgs& args) {
  check_statistics_unused(args, "layer_norm", 1);
  const bool with_bias = args.inputs[2].defined();
  const TensorList grads = apply(kLayerNormBackward,
                                 {args.grad_outputs[0], Tensor(), args.inputs[0], args.inputs[1],
                                  args.outputs[1], args.outputs[2]},
                                 LayerNormBackwardAttrs{with_bias});
  for (size_t i = 0; i < grads.size(); ++i)
    if (args.needs(static_cast<int>(i))) args.grad_inputs[i] = grads[i];
}

void backward_add(const BackwardArgs& args) {
  check_statistics_unused(args, "add_layer_norm", 2);
  const Tensor& dy = args.grad_outputs[0];
  const Tensor& dsum = args.grad_outputs[1];
  const auto set = [&](int input, const Tensor& gradient) {
    if (args.needs(input)) args.grad_inputs[input] = gradient;
  };
  if (!dy.defined()) {  // only the sum was used
    set(0, dsum);
    set(1, dsum);
    return;
  }
  const bool with_bias = args.inputs[3].defined();
  const TensorList grads =
      apply(kLayerNormBackward,
            {dy, dsum, args.outputs[1], args.inputs[2], args.outputs[2], args.outputs[3]},
            LayerNormBackwardAttrs{with_bias});
  set(0, grads[0]);
  set(1, grads[0]);
  set(2, grads[1]);
  if (with_bias) set(3, grads[2]);
}

TensorList decompose_add(std::span<const Tensor> inputs, const Attrs& attrs) {
  const Tensor sum = apply(kAdd, {inputs[0], inputs[1]}, NoAttrs{})[0];
  const TensorList normed = apply(kLayerNorm, {sum, inputs[2], inputs[3]}, attrs);
  return {normed[0], sum, normed[1], normed[2]};
}

constexpr const char* kInputNames[] = {"x", "w", "b"};
constexpr const char* kAddInputNames[] = {"x", "residual", "w", "b"};
constexpr const char* kBackwardInputNames[] = {"dy", "dsum", "x", "w", "mean", "rstd"};

}  // namespace

const OpDef kLayerNorm = {
    .name = "layer_norm",
    .input_names = kInputNames,
    .infer = infer,
    .parse_attrs = Attrs::parse<LayerNormAttrs>,
    .cpu = layer_norm_cpu,
    .reference = layer_norm_reference,
    .backward = backward,
    .saved_inputs = bits(0, 1),
    .saved_outputs = bits(1, 2),
    .fusion = Fusion::Reduction,
    .cost = streaming_cost<8>,
};

const OpDef kAddLayerNorm = {
    .name = "add_layer_norm",
    .input_names = kAddInputNames,
    .infer = infer_add,
    .parse_attrs = Attrs::parse<LayerNormAttrs>,
    .cpu = add_layer_norm_cpu,
    .reference = add_layer_norm_reference,
    .decompose = decompose_add,
    .backward = backward_add,
    .saved_inputs = bit(2),
    .saved_outputs = bits(1, 2, 3),
    .fusion = Fusion::Reduction,
    .cost = streaming_cost<9>,
};

const OpDef kLayerNormBackward = {
    .name = "layer_norm_backward",
    .input_names = kBackwardInputNames,
    .infer = infer_backward,
    .parse_attrs = Attrs::parse<LayerNormBackwardAttrs>,
    .cpu = layer_norm_backward_cpu,
    .reference = layer_norm_backward_reference,
    .fusion = Fusion::Reduction,
    .cost = streaming_cost<14>,
};

Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps) {
  return apply(kLayerNorm, {x, w, b}, LayerNormAttrs{eps})[0];
}

NormedSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& w, const Tensor& b,
                         double eps) {
  const TensorList outputs = apply(kAddLayerNorm, {x, residual, w, b}, LayerNormAttrs{eps});
  return {outputs[0], outputs[1]};
}

}  // namespace obelisk::ops
