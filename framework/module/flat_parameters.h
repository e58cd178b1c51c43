// FlatParameters: all parameters of a model in one buffer, their gradients in another.
//
// In bf16 there are three: bf16 values, which the model computes with, f32 masters, which the
// optimizer updates and the values are rounded from, and f32 gradients.
//
// The optimizer, clipping and the data-parallel all-reduce then run over flat memory in one pass.
// Parameters with weight decay come first, the others after them, each beginning at a multiple of
// 64 bytes; the gaps stay zero in all buffers.
#pragma once

#include <vector>

#include "framework/module/module.h"

namespace obelisk {

class FlatParameters {
 public:
  // Takes the memory and gives every parameter its value (requires_grad, uninitialised) and
  // gradient view (zero). dtype: F32, BF16 or F64, of the values; masters and gradients are f32 for
  // bf16 and of the same dtype otherwise.
  FlatParameters(std::vector<Parameter*> parameters, DType dtype);

  // Sets every master and value from (seed, path). The same masters for all dtypes.
  void initialise(uint64_t seed) const;
  // Sets the values from the masters, for whoever wrote those by other means than the optimizer.
  void round_masters() const;
  void zero_gradients() const;

  const std::vector<Parameter*>& parameters() const { return parameters_; }
  const Tensor& values() const { return values_; }  // [size]
  // [size]; the very same tensor as values() unless that is bf16.
  const Tensor& masters() const { return masters_; }
  // Of parameters()[index], a view of masters().
  Tensor master(size_t index) const;
  const Tensor& gradients() const { return gradients_; }  // [size]
  int64_t size() const { return values_.numel(); }
  int64_t decayed_size() const { return decayed_size_; }  // the first elements, with weight decay
  int64_t num_parameters() const { return num_parameters_; }  // without gaps

 private:
  std::vector<Parameter*> parameters_;
  std::vector<int64_t> offsets_;  // of each parameter, in elements
  Tensor values_;
  Tensor masters_;
  Tensor gradients_;
  int64_t decayed_size_ = 0;
  int64_t num_parameters_ = 0;
};

}  // namespace obelisk
