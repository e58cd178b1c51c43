// The values of a graph's constant as text: numbers with as many digits as bring the same bits
// back, separated by spaces; 16-bit floats as their bits.
#pragma once

#include <string>
#include <string_view>

#include "framework/tensor/tensor.h"

namespace obelisk {

std::string print_constant(const Tensor& tensor);
// Throws ValueError: "constant: must be 3 numbers; got '1 2'". Dims must be numbers.
Tensor read_constant(std::string_view text, DType dtype, const DimShape& dims);

}  // namespace obelisk
