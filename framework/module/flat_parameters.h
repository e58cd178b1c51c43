// FlatParameters: all parameters of a model in one buffer, their gradients in another.
//
// The optimizer, clipping and the data-parallel all-reduce then run over flat memory in one pass.
// Parameters with weight decay come first, the others after them, each beginning at a multiple of
// 64 bytes; the gaps stay zero in both buffers.
#pragma once

#include <vector>

#include "framework/module/module.h"

namespace obelisk {

class FlatParameters {
 public:
  // Takes the memory and gives every parameter its value (requires_grad, uninitialised) and
  // gradient view (zero). dtype: F32 or F64, of values and gradients alike.
  FlatParameters(std::vector<Parameter*> parameters, DType dtype);

  // Sets every value from (seed, path). The same numbers for f32 and f64.
  void initialise(uint64_t seed) const;
  void zero_gradients() const;

  const std::vector<Parameter*>& parameters() const { return parameters_; }
  const Tensor& values() const { return values_; }        // [size]
  const Tensor& gradients() const { return gradients_; }  // [size]
  int64_t size() const { return values_.numel(); }
  int64_t decayed_size() const { return decayed_size_; }  // the first elements, with weight decay
  int64_t num_parameters() const { return num_parameters_; }  // without gaps

 private:
  std::vector<Parameter*> parameters_;
  Tensor values_;
  Tensor gradients_;
  int64_t decayed_size_ = 0;
  int64_t num_parameters_ = 0;
};

}  // namespace obelisk
