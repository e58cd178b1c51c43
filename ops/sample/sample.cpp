#include "ops/sample/sample.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "framework/tensor/philox.h"
#include "ops/elementwise/strided.h"
#include "ops/sample/sample_kernels.h"

namespace obelisk::ops {
namespace {

constexpr const char* kNames[] = {"logits", "rng_state"};

void infer_sample(const InferArgs& args) {
  args.require_same_f32_f64({0});
  const auto& [temperature, top_k, stream] = args.attrs.as<SampleAttrs>();
  const DimShape& shape = args.shape(0);
  args.require(temperature >= 0.0 && std::isfinite(temperature),
               "temperature must be finite and not negative");
  args.require(top_k >= 0, "top_k must not be negative");
  args.require(shape.size() == 2, "logits must be [N, V]");
  args.require(!(shape[1] == 0) || shape[0] == 0, "the vocabulary must not be empty");
  args.require(args.inputs[1].dtype == DType::I64 && args.shape(1) == DimShape{3},
               "rng_state must be i64 [3]");
  args.add_output({shape[0]}, DType::I64);
}

double uniform_of_row(const KernelArgs& args, int64_t row) {
  const int64_t* state = args.inputs[1].data<int64_t>();
  const Philox random(static_cast<uint64_t>(state[0]),
                      static_cast<uint64_t>(args.attrs.as<SampleAttrs>().stream),
                      static_cast<uint64_t>(state[1]));
  return random.uniform(static_cast<uint64_t>(state[2]) + static_cast<uint64_t>(row));
}

template <typename T>
[[noreturn]] void refuse_row(const T* logits, int64_t vocabulary, int64_t row) {
  for (int64_t id = 0; id < vocabulary; ++id)
    OBELISK_CHECK(!std::isnan(logits[id]) && logits[id] != std::numeric_limits<T>::infinity(),
                  ValueError, "sample: logits must not be NaN or +inf; got {} at row {}, id {}",
                  std::isnan(logits[id]) ? "nan" : "inf", row, id);
  raise<ValueError>("sample: a row must have a finite logit; row {} has none", row);
}

// The first id whose cumulative weight exceeds u times the total; an id of weight 0 never does.
int64_t pick(const double* weights, int64_t vocabulary, double uniform) {
  double total = 0;
  for (int64_t id = 0; id < vocabulary; ++id) total += weights[id];
  const double target = uniform * total;
  double sum = 0;
  int64_t last = 0;
  for (int64_t id = 0; id < vocabulary; ++id) {
    if (weights[id] == 0) continue;
    sum += weights[id];
    if (sum > target) return id;
    last = id;
  }
  return last;
}

// Weights of all but the top_k largest logits become 0. `scratch` holds a row.
template <typename T>
void keep_top(const T* logits, int64_t vocabulary, int64_t top_k, double* scratch,
              double* weights) {
  std::copy_n(logits, vocabulary, scratch);
  std::nth_element(scratch, scratch + top_k - 1, scratch + vocabulary, std::greater<>());
  const double threshold = scratch[top_k - 1];
  int64_t equals = top_k;  // how many logits at the threshold itself are kept
  for (int64_t id = 0; id < vocabulary; ++id) equals -= logits[id] > threshold;
  for (int64_t id = 0; id < vocabulary; ++id) {
    const bool kept = logits[id] > threshold || (logits[id] == threshold && equals-- > 0);
    if (!kept) weights[id] = 0;
  }
}

// `scratch`: two rows.
template <typename T>
void sample_rows(const KernelArgs& args, int64_t begin, int64_t end, double* scratch) {
  const auto& [temperature, top_k, stream] = args.attrs.as<SampleAttrs>();
  const int64_t vocabulary = args.inputs[0].shape()[1];
  const bool limited = top_k > 0 && top_k < vocabulary && temperature > 0;
  double* const weights = scratch + vocabulary;
  for (int64_t row = begin; row < end; ++row) {
    const T* logits = args.inputs[0].data<T>() + row * vocabulary;
    int64_t& id = args.outputs[0].data<int64_t>()[row];
    bool bad = false;
    const double largest = largest_logit(logits, vocabulary, bad);
    if (bad || largest == -std::numeric_limits<double>::infinity())
      refuse_row(logits, vocabulary, row);
    if (temperature == 0) {
      id = std::find(logits, logits + vocabulary, static_cast<T>(largest)) - logits;
      continue;
    }
    softmax_weights(logits, vocabulary, largest, temperature, weights);
    if (limited) keep_top(logits, vocabulary, top_k, scratch, weights);
    id = pick(weights, vocabulary, uniform_of_row(args, row));
  }
}

void sample_kernel(const KernelArgs& args) {
  const int64_t rows = args.inputs[0].shape()[0], vocabulary = args.inputs[0].shape()[1];
  visit_f32_f64(args.inputs[0].dtype(), "sample", [&]<typename T>() {
    // A logit costs an exponential and two additions: some ten elementwise operations.
    constexpr int64_t kCostPerLogit = 10;
    args.context.parallel_for_with_scratch<double>(
        rows, elementwise_grain(rows, kCostPerLogit * vocabulary), 2 * vocabulary,
        [&](int64_t begin, int64_t end, double* scratch) {
          sample_rows<T>(args, begin, end, scratch);
        });
  });
}

// How many ids of the row come before this one in descending order of logits.
template <typename T>
int64_t rank_of(const T* logits, int64_t vocabulary, int64_t id) {
  int64_t rank = 0;
  for (int64_t other = 0; other < vocabulary; ++other)
    rank += logits[other] > logits[id] || (logits[other] == logits[id] && other < id);
  return rank;
}

template <typename T>
int64_t reference_row(const KernelArgs& args, int64_t row) {
  const auto& [temperature, top_k, stream] = args.attrs.as<SampleAttrs>();
  const int64_t vocabulary = args.inputs[0].shape()[1];
  const T* logits = args.inputs[0].data<T>() + row * vocabulary;
  int64_t best = 0;
  for (int64_t id = 0; id < vocabulary; ++id) {
    if (!(logits[id] < std::numeric_limits<T>::infinity())) refuse_row(logits, vocabulary, row);
    if (rank_of(logits, vocabulary, id) == 0) best = id;
  }
  if (logits[best] == -std::numeric_limits<T>::infinity()) refuse_row(logits, vocabulary, row);
  if (temperature == 0) return best;
  const Workspace<double> weights(args.context, vocabulary);
  for (int64_t id = 0; id < vocabulary; ++id) {
    const bool kept = top_k == 0 || rank_of(logits, vocabulary, id) < top_k;
    const double shifted = static_cast<double>(logits[id]) - static_cast<double>(logits[best]);
    weights[id] = kept ? std::exp(shifted / temperature) : 0.0;
  }
  return pick(weights.data(), vocabulary, uniform_of_row(args, row));
}

void sample_reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "sample", [&]<typename T>() {
    for (int64_t row = 0; row < args.inputs[0].shape()[0]; ++row)
      args.outputs[0].data<int64_t>()[row] = reference_row<T>(args, row);
  });
}

}  // namespace

constinit const OpDef kSample{.name = "sample",
                              .input_names = kNames,
                              .infer = infer_sample,
                              .parse_attrs = Attrs::parse<SampleAttrs>,
                              .cpu = sample_kernel,
                              .reference = sample_reference,
                              .cost = streaming_cost<10>};

Tensor sample(const Tensor& logits_NV, const Tensor& rng_state, const SampleAttrs& attrs) {
  return apply(kSample, {logits_NV, rng_state}, attrs)[0];
}

}  // namespace obelisk::ops
