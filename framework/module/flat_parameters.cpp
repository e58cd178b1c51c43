#include "framework/module/flat_parameters.h"

#include <algorithm>
#include <cstring>

#include "framework/autograd/node.h"
#include "framework/tensor/philox.h"

namespace obelisk {
namespace {

constexpr int64_t kAlignment = 16;  // elements; 64 bytes of f32

template <typename T>
void fill_initial(const Parameter& parameter, uint64_t seed) {
  T* values = parameter.value().data<T>();
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
    : parameters_(std::move(parameters)) {
  std::vector<int64_t> offsets(parameters_.size());
  int64_t size = 0;
  for (bool decays : {true, false}) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i]->decays() != decays) continue;
      offsets[i] = size;
      num_parameters_ += parameters_[i]->numel();
      size += (parameters_[i]->numel() + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (decays) decayed_size_ = size;
  }
  values_ = zeros({size}, dtype);
  gradients_ = zeros({size}, dtype);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Shape& shape = parameters_[i]->shape();
    Tensor value = values_.alias(shape, contiguous_strides(shape), offsets[i]);
    value.set_requires_grad(true);
    value.set_grad(gradients_.alias(shape, contiguous_strides(shape), offsets[i]));
    parameters_[i]->set_value(std::move(value));
  }
}

void FlatParameters::initialise(uint64_t seed) const {
  for (const Parameter* parameter : parameters_)
    visit_f32_f64(values_.dtype(), "initialise",
                  [&]<typename T>() { fill_initial<T>(*parameter, seed); });
  values_.storage()->mark_written("initialise");
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
