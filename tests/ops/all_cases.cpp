// The case lists of every op, in the order of ops::all().
#include "tests/ops/attention_cases.h"
#include "tests/ops/cross_entropy_cases.h"
#include "tests/ops/dropout_cases.h"
#include "tests/ops/elementwise_cases.h"
#include "tests/ops/embedding_cases.h"
#include "tests/ops/full_cases.h"
#include "tests/ops/gelu_cases.h"
#include "tests/ops/layer_norm_cases.h"
#include "tests/ops/layout_cases.h"
#include "tests/ops/matmul_cases.h"
#include "tests/ops/op_case.h"
#include "tests/ops/optimizer_cases.h"
#include "tests/ops/reduce_cases.h"
#include "tests/ops/sample_cases.h"

namespace obelisk {
namespace {

void append(std::vector<OpCases>& all, OpCases one) { all.push_back(std::move(one)); }
void append(std::vector<OpCases>& all, std::vector<OpCases> family) {
  for (OpCases& one : family) all.push_back(std::move(one));
}

std::vector<OpCases> collect() {
  std::vector<OpCases> all;
  append(all, full_cases());
  append(all, attention_cases());
  append(all, attention_backward_cases());
  append(all, dropout_cases());
  append(all, cross_entropy_cases());
  append(all, cross_entropy_backward_cases());
  append(all, linear_cross_entropy_cases());
  append(all, scaled_accumulate_cases());
  append(all, elementwise_cases());
  append(all, embedding_cases());
  append(all, gelu_cases());
  append(all, gelu_backward_cases());
  append(all, layer_norm_cases());
  append(all, add_layer_norm_cases());
  append(all, layer_norm_backward_cases());
  append(all, layout_cases());
  append(all, matmul_cases());
  append(all, matmul_accumulate_cases());
  append(all, squared_norm_cases());
  append(all, clip_factor_cases());
  append(all, adamw_cases());
  append(all, reduce_cases());
  append(all, sample_cases());
  return all;
}

}  // namespace

const std::vector<OpCases>& all_op_cases() {
  static const std::vector<OpCases> kCases = collect();
  return kCases;
}

}  // namespace obelisk
