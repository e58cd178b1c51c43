#include "ops/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>

namespace obelisk::ops {
namespace {

void infer(const InferArgs& args) {
  args.require_same_float({0});
  args.require(args.shape(0).size() == 2, "logits must be [N, V]");
  args.require(args.inputs[1].dtype == DType::I64 && args.shape(1) == DimShape{args.shape(0)[0]},
               "targets must be i64, one a row of logits");
  const DType sums = sum_dtype(args.inputs[0].dtype);
  args.add_output({}, sums);
  args.add_output({args.shape(0)[0]}, sums);
  args.add_output({args.shape(0)[0]}, sums);
}

void infer_backward(const InferArgs& args) {
  args.require_same_float({0});
  args.require_sums({2, 3, 4}, 0);
  args.require(args.shape(0).size() == 2, "logits must be [N, V]");
  const DimShape rows{args.shape(0)[0]};
  args.require(args.inputs[1].dtype == DType::I64 && args.shape(1) == rows,
               "targets must be i64, one a row of logits");
  args.require(args.shape(2) == rows && args.shape(3) == rows,
               "statistics must be one a row of logits");
  args.require(args.shape(4).empty(), "the upstream gradient must be a scalar");
  args.add_output(args.shape(0), args.inputs[0].dtype);
}

void reference(const KernelArgs& args) {
  const int64_t rows = args.inputs[0].dim(0), width = args.inputs[0].dim(1);
  check_targets("cross_entropy", args.inputs[1], width);
  visit_f32_f64(args.inputs[0].dtype(), "cross_entropy", [&]<typename T>() {
    const T* x = args.inputs[0].data<T>();
    const int64_t* targets = args.inputs[1].data<int64_t>();
    double loss = 0;
    for (int64_t n = 0; n < rows; ++n, x += width) {
      const double largest = width == 0 ? 0.0 : *std::max_element(x, x + width);
      double sum = 0;
      for (int64_t v = 0; v < width; ++v) sum += std::exp(x[v] - largest);
      args.outputs[1].data<T>()[n] = static_cast<T>(largest);
      args.outputs[2].data<T>()[n] = static_cast<T>(sum);
      if (targets[n] >= 0) loss += std::log(sum) + largest - x[targets[n]];
    }
    *args.outputs[0].data<T>() = static_cast<T>(loss);
  });
}

void backward_reference(const KernelArgs& args) {
  const int64_t rows = args.inputs[0].dim(0), width = args.inputs[0].dim(1);
  visit_f32_f64(args.inputs[0].dtype(), "cross_entropy_backward", [&]<typename T>() {
    const T* x = args.inputs[0].data<T>();
    T* dx = args.outputs[0].data<T>();
    const double upstream = args.inputs[4].item<T>();
    for (int64_t n = 0; n < rows; ++n, x += width, dx += width) {
      const int64_t target = args.inputs[1].data<int64_t>()[n];
      const double largest = args.inputs[2].data<T>()[n], sum = args.inputs[3].data<T>()[n];
      for (int64_t v = 0; v < width; ++v) {
        const double probability = std::exp(x[v] - largest) / sum;
        dx[v] = target < 0 ? T{0} : static_cast<T>(upstream * (probability - (v == target)));
      }
    }
  });
}

void backward(const BackwardArgs& args) {
  if (!args.needs(0)) return;
  args.grad_inputs[0] = apply(
      kCrossEntropyBackward,
      {args.inputs[0], args.inputs[1], args.outputs[1], args.outputs[2], args.grad_outputs[0]},
      NoAttrs{})[0];
}

constexpr const char* kInputNames[] = {"logits", "targets"};
constexpr const char* kBackwardInputNames[] = {"logits", "targets", "m", "s", "g"};

}  // namespace

void check_targets(const char* op, const Tensor& targets, int64_t vocabulary) {
  const int64_t* ids = targets.data<int64_t>();
  for (int64_t i = 0; i < targets.numel(); ++i)
    OBELISK_CHECK(ids[i] >= -1 && ids[i] < vocabulary, ValueError,
                  "{}: targets must be in [0, {}), or -1 to leave a row out; got {} at position {}",
                  op, vocabulary, ids[i], i);
}

const OpDef kCrossEntropy = {
    .name = "cross_entropy",
    .input_names = kInputNames,
    .infer = infer,
    .cpu = cross_entropy_cpu,
    .reference = reference,
    .backward = backward,
    .saved_inputs = bits(0, 1),
    .saved_outputs = bits(1, 2),
    .fusion = Fusion::Reduction,
    .cost = streaming_cost<20>,
};

const OpDef kCrossEntropyBackward = {
    .name = "cross_entropy_backward",
    .input_names = kBackwardInputNames,
    .infer = infer_backward,
    .cpu = cross_entropy_backward_cpu,
    .reference = backward_reference,
    .fusion = Fusion::Broadcast,
    .cost = streaming_cost<20>,
};

Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  return apply(kCrossEntropy, {logits, targets}, NoAttrs{})[0];
}

}  // namespace obelisk::ops
