#include "framework/module/flat_parameters.h"

#include <algorithm>
#include <cstring>

#include "framework/autograd/node.h"
#include "framework/tensor/philox.h"

namespace obelisk {
namespace {

constexpr int64_t kAlignment = 32;  // elements; 64 bytes of bf16

template <typename T>
void fill_initial(const Parameter& parameter, T* values, uint64_t seed) {
  const int64_t n = parameter.numel();
  const Initial& initial = parameter.initial();
  if (initial.kind != Initial::Kind::Normal) {
    std::fill_n(values, n, initial.kind == Initial::Kind::Ones ? T{1} : T{0});
    return;
  }
  const Philox random(seed, random_stream(parameter.path(), "init"), 0);
  const auto std_dev = static_cast<float>(initial.std);
  ExecContext::current().parallel_for(n, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      values[i] = std_dev * random.normal(static_cast<uint64_t>(i));
  });
}

}  // namespace

FlatParameters::FlatParameters(std::vector<Parameter*> parameters, DType dtype)
    : parameters_(std::move(parameters)), offsets_(parameters_.size()) {
  int64_t size = 0;
  for (bool decays : {true, false}) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i]->decays() != decays) continue;
      offsets_[i] = size;
      num_parameters_ += parameters_[i]->numel();
      size += (parameters_[i]->numel() + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (decays) decayed_size_ = size;
  }
  values_ = zeros({size}, dtype);
  masters_ = sum_dtype(dtype) == dtype ? values_ : zeros({size}, sum_dtype(dtype));
  gradients_ = zeros({size}, sum_dtype(dtype));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Shape& shape = parameters_[i]->shape();
    Tensor value = values_.alias(shape, contiguous_strides(shape), offsets_[i]);
    value.set_requires_grad(true);
    value.set_grad(gradients_.alias(shape, contiguous_strides(shape), offsets_[i]));
    parameters_[i]->set_value(std::move(value));
  }
}

Tensor FlatParameters::master(size_t index) const {
  const Shape& shape = parameters_.at(index)->shape();
  return masters_.alias(shape, contiguous_strides(shape), offsets_[index]);
}

void FlatParameters::initialise(uint64_t seed) const {
  visit_f32_f64(masters_.dtype(), "initialise", [&]<typename T>() {
    for (size_t i = 0; i < parameters_.size(); ++i)
      fill_initial(*parameters_[i], master(i).data<T>(), seed);
  });
  masters_.storage()->mark_written("initialise");
  round_masters();
}

void FlatParameters::round_masters() const {
  if (values_.dtype() != DType::BF16) return;
  const float* masters = masters_.data<float>();
  auto* values = values_.data<BFloat16>();
  ExecContext::current().parallel_for(size(), 1 << 14, [&](int64_t begin, int64_t end) {
    std::transform(masters + begin, masters + end, values + begin, bfloat16_from);
  });
  values_.storage()->mark_written("round_masters");
}

void FlatParameters::zero_gradients() const {
  const size_t bytes = size_of(gradients_.dtype());
  auto* data = static_cast<std::byte*>(gradients_.raw_data());
  ExecContext::current().parallel_for(size(), 1 << 16, [&](int64_t begin, int64_t end) {
    std::memset(data + static_cast<size_t>(begin) * bytes, 0,
                static_cast<size_t>(end - begin) * bytes);
  });
  gradients_.storage()->mark_written("zero_gradients");
}

}  // namespace obelisk
