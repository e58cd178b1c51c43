#include "tests/ops/op_case.h"

namespace obelisk {

Operand normal(Shape shape, double scale, double mean) {
  Operand operand;
  operand.shape = shape;
  operand.scale = scale;
  operand.mean = mean;
  return operand;
}

Operand positive(Shape shape, double scale) {
  Operand operand;
  operand.fill = Operand::Fill::Positive;
  operand.shape = shape;
  operand.scale = scale;
  return operand;
}

Operand ids(Shape shape, int64_t bound) {
  Operand operand;
  operand.fill = Operand::Fill::Ids;
  operand.shape = shape;
  operand.bound = bound;
  operand.dtype = DType::I64;
  return operand;
}

Operand absent() {
  Operand operand;
  operand.fill = Operand::Fill::Absent;
  return operand;
}

Operand values(Shape shape, std::vector<double> values) {
  Operand operand;
  operand.fill = Operand::Fill::Values;
  operand.shape = shape;
  operand.values = std::move(values);
  return operand;
}

Operand doubles(Shape shape, std::vector<double> values_in) {
  Operand operand = values(shape, std::move(values_in));
  operand.always_f64 = true;
  return operand;
}

Operand integers(Shape shape, std::vector<double> values_in) {
  Operand operand = values(shape, std::move(values_in));
  operand.dtype = DType::I64;
  return operand;
}

Operand in_bf16(Operand operand) {
  operand.dtype = DType::BF16;
  return operand;
}

Operand with_row_gap(Operand operand, int64_t gap) {
  operand.row_gap = gap;
  return operand;
}

Operand as_sum(Operand operand) {
  operand.is_sum = true;
  return operand;
}

}  // namespace obelisk
