// Numbers from PyTorch: tests/golden/ops.json, whose README.md states the format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"

namespace obelisk {

class GoldenCase {
 public:
  // Names of the cases of one op, in the file's order. Fails the test when there are none.
  static std::vector<std::string> names(const std::string& op);

  // Throws IoError for a name that the file does not hold.
  explicit GoldenCase(const std::string& name);

  double number(const std::string& attribute) const;
  bool flag(const std::string& attribute) const;
  std::string text(const std::string& attribute) const;

  // On the current context. Floats come in `dtype`, ids in i64; undefined when there is no such
  // operand.
  Tensor input(const std::string& name, DType dtype) const;
  Tensor cotangent(const std::string& output, DType dtype) const;

  // Within the case's own tolerance for the tensor's dtype, element by element.
  void expect_output(const std::string& name, const Tensor& actual) const;
  void expect_gradient(const std::string& input, const Tensor& actual) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace obelisk
