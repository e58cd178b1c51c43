#include "ops/linear_cross_entropy/linear_cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "framework/autograd/node.h"
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/matmul.h"

namespace obelisk::ops {
namespace {

void infer(const InferArgs& args) {
  args.require_same_float({0, 1});
  args.require(args.shape(0).size() == 2 && args.shape(1).size() == 2,
               "x must be [N, D] and w [V, D]");
  args.require(args.shape(0)[1] == args.shape(1)[1], "last dims of x and w must be equal");
  args.require(args.inputs[2].dtype == DType::I64 && args.shape(2) == DimShape{args.shape(0)[0]},
               "targets must be i64, one a row of x");
  const DType sums = sum_dtype(args.inputs[0].dtype);
  args.add_output({}, sums);
  if (!args.attrs.as<LinearCrossEntropyAttrs>().with_gradient) return;
  args.add_output(args.shape(0), sums);
  args.add_output(args.shape(1), sums);
}

// Sizes and operands of one call.
template <typename T>
struct Call {
  using Sum = Compute<T>;
  explicit Call(const KernelArgs& args)
      : rows(args.inputs[0].dim(0)),
        width(args.inputs[0].dim(1)),
        vocabulary(args.inputs[1].dim(0)),
        x(args.inputs[0].data<T>()),
        w(args.inputs[1].data<T>()),
        targets(args.inputs[2].data<int64_t>()),
        dx(args.outputs.size() > 1 ? args.outputs[1].data<Sum>() : nullptr),
        dw(args.outputs.size() > 1 ? args.outputs[2].data<Sum>() : nullptr) {}
  int64_t rows, width, vocabulary;
  const T* x;
  const T* w;
  const int64_t* targets;
  Sum* dx;  // null without gradient
  Sum* dw;
};

// Logits of a chunk and their gradients, which take the logits' place where the types are alike.
template <typename T>
class ChunkLogits {
 public:
  using Sum = Compute<T>;
  ChunkLogits(ExecContext& context, int64_t elements, bool gradient)
      : logits_(context, elements), gradients_(context, gradient && !kInPlace ? elements : 0) {}
  Sum* logits() const { return logits_.data(); }
  T* gradients() const {
    if constexpr (kInPlace)
      return logits_.data();
    else
      return gradients_.data();
  }

 private:
  static constexpr bool kInPlace = std::is_same_v<T, Sum>;
  const Workspace<Sum> logits_;
  const Workspace<T> gradients_;
};

template <typename T>
void run_chunks(const KernelArgs& args) {
  using Sum = Compute<T>;
  const Call<T> call(args);
  check_targets("linear_cross_entropy", args.inputs[2], call.vocabulary);
  const int64_t chunk = cross_entropy_chunk_rows(call.rows, call.vocabulary);
  const ChunkLogits<T> at(args.context, chunk * call.vocabulary, call.dx != nullptr);
  const Workspace<double> losses(args.context, chunk);
  if (call.dw != nullptr && call.rows == 0)
    std::fill_n(call.dw, call.vocabulary * call.width, Sum{0});
  double loss = 0;
  for (int64_t first = 0; first < call.rows; first += chunk) {
    const int64_t rows = std::min(chunk, call.rows - first);
    const GemmOperand<T> x{call.x + first * call.width, call.width, false};
    gemm<T, Sum>(args.context, {.m = rows,
                                .n = call.vocabulary,
                                .k = call.width,
                                .a = x,
                                .b = {call.w, call.width, true},
                                .c = at.logits(),
                                .c_stride = call.vocabulary});
    T* const gradients = call.dx == nullptr ? nullptr : at.gradients();
    softmax_loss_rows(static_cast<const Sum*>(at.logits()), call.targets + first, rows,
                      call.vocabulary, gradients, losses.data());
    for (int64_t n = 0; n < rows; ++n) loss += losses[n];
    if (call.dx == nullptr) continue;
    gemm<T, Sum>(args.context, {.m = rows,
                                .n = call.width,
                                .k = call.vocabulary,
                                .a = {gradients, call.vocabulary, false},
                                .b = {call.w, call.width, false},
                                .c = call.dx + first * call.width,
                                .c_stride = call.width});
    gemm<T, Sum>(args.context, {.m = call.vocabulary,
                                .n = call.width,
                                .k = rows,
                                .a = {gradients, call.vocabulary, true},
                                .b = x,
                                .c = call.dw,
                                .c_stride = call.width,
                                .accumulate = first > 0});
  }
  *args.outputs[0].data<Sum>() = static_cast<Sum>(loss);
}

void kernel(const KernelArgs& args) {
  visit_float(args.inputs[0].dtype(), "linear_cross_entropy",
              [&]<typename T>() { run_chunks<T>(args); });
}

// One row at a time, in double.
template <typename T>
void run_reference(const KernelArgs& args) {
  const Call<T> call(args);
  check_targets("linear_cross_entropy", args.inputs[2], call.vocabulary);
  const Workspace<double> p(args.context, call.vocabulary);
  const int64_t d = call.width;
  if (call.dw != nullptr) std::fill_n(call.dw, call.vocabulary * d, T{0});
  double loss = 0;
  for (int64_t n = 0; n < call.rows; ++n) {
    const T* x = call.x + n * d;
    double largest = -HUGE_VAL, sum = 0;
    for (int64_t v = 0; v < call.vocabulary; ++v) {
      p[v] = 0;
      for (int64_t i = 0; i < d; ++i) p[v] += static_cast<double>(x[i]) * call.w[v * d + i];
      largest = std::max(largest, p[v]);
    }
    const int64_t target = call.targets[n];
    const double chosen = target < 0 ? 0.0 : p[target];
    for (int64_t v = 0; v < call.vocabulary; ++v) sum += p[v] = std::exp(p[v] - largest);
    if (target >= 0) loss += std::log(sum) + largest - chosen;
    if (call.dx == nullptr) continue;
    std::fill_n(call.dx + n * d, d, T{0});
    if (target < 0) continue;
    for (int64_t v = 0; v < call.vocabulary; ++v) {
      const double g = p[v] / sum - (v == target);
      for (int64_t i = 0; i < d; ++i) {
        call.dx[n * d + i] += static_cast<T>(g * call.w[v * d + i]);
        call.dw[v * d + i] += static_cast<T>(g * x[i]);
      }
    }
  }
  *args.outputs[0].data<T>() = static_cast<T>(loss);
}

void reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "linear_cross_entropy",
                [&]<typename T>() { run_reference<T>(args); });
}

TensorList decompose(std::span<const Tensor> inputs, const Attrs&) {
  TensorList outputs;
  outputs.push_back(cross_entropy(linear(inputs[0], inputs[1], Tensor()), inputs[2]));
  return outputs;
}

void backward(const BackwardArgs& args) {
  OBELISK_CHECK(args.attrs.as<LinearCrossEntropyAttrs>().with_gradient, Bug,
                "bug: linear_cross_entropy was applied without with_gradient and asked for one");
  const Tensor& upstream = args.grad_outputs[0];
  if (args.needs(0)) args.grad_inputs[0] = multiply(args.outputs[1], upstream);
  if (!args.needs(1)) return;
  if (args.destination(1).defined()) {
    scaled_accumulate(args.destination(1), args.outputs[2], upstream);
  } else {
    args.grad_inputs[1] = multiply(args.outputs[2], upstream);
  }
}

Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs, const Attrs&) {
  const double product_flops = 2.0 * static_cast<double>(product(inputs[0].shape).number()) *
                               static_cast<double>(inputs[1].shape[0].number());
  const double products = outputs.size() > 1 ? 3.0 : 1.0;
  return {products * product_flops, products * bytes_of(inputs), bytes_of(outputs)};
}

// --- scaled_accumulate

void infer_scaled_accumulate(const InferArgs& args) {
  args.require_same_f32_f64({0, 1, 2});
  args.require(args.shape(0) == args.shape(1), "x must have the shape of destination");
  args.require(args.shape(2).empty(), "factor must be a scalar");
}

void scaled_accumulate_reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "scaled_accumulate", [&]<typename T>() {
    T* destination = args.inputs[0].data<T>();
    const double factor = args.inputs[2].item<T>();
    for (int64_t i = 0; i < args.inputs[0].numel(); ++i)
      destination[i] = static_cast<T>(destination[i] + factor * args.inputs[1].data<T>()[i]);
  });
}

Cost scaled_accumulate_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                            const Attrs&) {
  return {2.0 * static_cast<double>(product(inputs[0].shape).number()), bytes_of(inputs),
          bytes_of(inputs.first(1))};
}

constexpr const char* kInputNames[] = {"x", "w", "targets"};
constexpr const char* kScaledAccumulateInputs[] = {"destination", "x", "factor"};

}  // namespace

int64_t cross_entropy_chunk_rows(int64_t rows, int64_t vocabulary) {
  // Logits of 64 MiB in f32: each chunk reads w and updates dw once, so fewer chunks move less of a
  // large vocabulary's memory, and the logits themselves pass through the cache a few times.
  constexpr int64_t kMaxElements = int64_t{1} << 24;
  constexpr int64_t kMinRows = 64, kMaxRows = 512;
  if (rows == 0) return 1;
  const int64_t most =
      std::clamp(kMaxElements / std::max<int64_t>(1, vocabulary), kMinRows, kMaxRows);
  const int64_t num_chunks = (rows + most - 1) / most;
  return (rows + num_chunks - 1) / num_chunks;
}

const OpDef kLinearCrossEntropy = {
    .name = "linear_cross_entropy",
    .input_names = kInputNames,
    .infer = infer,
    .parse_attrs = Attrs::parse<LinearCrossEntropyAttrs>,
    .cpu = kernel,
    .reference = reference,
    .decompose = decompose,
    .backward = backward,
    .saved_outputs = bits(1, 2),
    .cost = cost,
};

const OpDef kScaledAccumulate = {
    .name = "scaled_accumulate",
    .input_names = kScaledAccumulateInputs,
    .infer = infer_scaled_accumulate,
    .cpu = scaled_accumulate_cpu,
    .reference = scaled_accumulate_reference,
    .writes = bit(0),
    .fusion = Fusion::Elementwise,
    .cost = scaled_accumulate_cost,
};

Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& targets) {
  const bool with_gradient =
      NoGradScope::grad_enabled() && (x.requires_grad() || w.requires_grad());
  return apply(kLinearCrossEntropy, {x, w, targets}, LinearCrossEntropyAttrs{with_gradient})[0];
}

void scaled_accumulate(const Tensor& destination, const Tensor& x, const Tensor& factor) {
  apply(kScaledAccumulate, {destination, x, factor}, NoAttrs{});
}

}  // namespace obelisk::ops
