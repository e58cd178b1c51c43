// Every case of every op, traced and executed from the graph: the bits of eager execution, forward
// and backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "framework/graph/executor.h"
#include "framework/graph/parse.h"
#include "framework/graph/tracer.h"
#include "framework/tensor/philox.h"
#include "ops/all.h"
#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "tests/ops/op_run.h"

namespace obelisk {
namespace {

struct Instance {
  const OpDef* op;
  const OpCase* op_case;
};

std::vector<Instance> instances() {
  std::vector<Instance> list;
  for (const OpCases& cases : all_op_cases())
    for (const OpCase& op_case : cases.cases) list.push_back({cases.op, &op_case});
  return list;
}

std::string instance_name(const ::testing::TestParamInfo<Instance>& info) {
  std::string name = std::string(info.param.op->name) + "__" + info.param.op_case->name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

// Defined operands, and the way back to all of them.
TensorList defined_ones(const TensorList& tensors) {
  TensorList list;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) list.push_back(tensor);
  return list;
}
TensorList spread(const TensorList& like, std::span<const Tensor> defined) {
  TensorList list;
  size_t next = 0;
  for (const Tensor& tensor : like) list.push_back(tensor.defined() ? defined[next++] : Tensor());
  return list;
}

// Sizes that an op wants as numbers: of records, of heads, and where its attributes hold numbers.
bool keeps_number(const OpDef& op, int operand, int dim) {
  const std::string_view name = op.name, operand_name = op.input_names[operand];
  if (operand_name == "rng_state" || operand_name == "rates") return true;
  if (name == "reshape" || name == "split") return true;
  if (name == "attention" || name == "attention_backward")
    return operand_name == "lse" ? dim == 1 : dim >= 2;
  return false;
}

// Of all operands that are there. `symbolic`: sizes from 2 on become symbols, equal sizes the same
// one: N7 stands for 7.
std::vector<TraceInput> describe_inputs(const OpDef& op, const TensorList& tensors, bool symbolic) {
  std::vector<TraceInput> inputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.defined()) continue;
    TraceInput input{"x" + std::to_string(i), tensor.dtype(), {}};
    const int operand = static_cast<int>(std::min(i, op.input_names.size() - 1));
    for (int d = 0; d < tensor.num_dims(); ++d) {
      const bool symbol = symbolic && tensor.shape()[d] > 1 && !keeps_number(op, operand, d);
      input.dims.push_back((symbol ? "N" : "") + std::to_string(tensor.shape()[d]));
    }
    input.contiguous = tensor.is_contiguous();
    inputs.push_back(input);
  }
  return inputs;
}

// The shape of broadcast_to is of its result, with the symbols of those sizes that x has.
Attrs with_symbols(const OpDef& op, const Attrs& attrs, const TensorList& operands) {
  if (std::string_view(op.name) != "broadcast_to") return attrs;
  const Shape x = operands[0].shape();
  return attrs.with_dims([&](Dim dim) {
    const bool known = dim.number() > 1 && std::count(x.begin(), x.end(), dim.number()) > 0;
    return known ? Tracer::current()->symbols().symbol("N" + to_string(dim)) : dim;
  });
}

// One cotangent for each output that carries gradient.
TensorList cotangents(const OpCase& op_case, const TensorList& outputs) {
  TensorList list;
  for (int index : gradient_outputs(op_case, outputs)) {
    const Tensor& output = outputs[index];
    const Philox random(7, random_stream("cotangent", std::to_string(index)), 0);
    Tensor cotangent = empty(output.shape(), output.dtype());
    for (int64_t i = 0; i < cotangent.numel(); ++i) {
      if (output.dtype() == DType::F32) {
        cotangent.data<float>()[i] = random.normal(i);
      } else {
        cotangent.data<double>()[i] = random.normal(i);
      }
    }
    list.push_back(cotangent);
  }
  return list;
}

// Outputs and gradients of one application; `dys` undefined: forward alone.
TensorList run_op(const OpDef& op, const OpCase& op_case, const Attrs& attrs,
                  const TensorList& inputs, std::span<const Tensor> dys) {
  const std::vector<int> wanted = gradient_inputs(op_case);
  if (!dys.empty())
    for (int i : wanted) inputs[i].impl().requires_grad = true;
  TensorList outputs = apply(op, inputs, attrs);
  if (dys.empty()) return outputs;
  Tensor total;
  const std::vector<int> from = gradient_outputs(op_case, outputs);
  for (size_t k = 0; k < from.size(); ++k) {
    const Tensor part = ops::sum(ops::multiply(outputs[from[k]], dys[k]));
    total = total.defined() ? ops::add(total, part) : part;
  }
  ops::backward(total);
  for (int i : wanted) outputs.push_back(inputs[i].grad());
  return outputs;
}

void expect_same_bits(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.defined(), expected.defined()) << what;
  if (!actual.defined()) return;
  const Values a = to_values(actual), e = to_values(expected);
  ASSERT_EQ(a.shape, e.shape) << what;
  ASSERT_EQ(a.dtype, e.dtype) << what;
  if (e.numbers.empty()) return;
  EXPECT_EQ(0, std::memcmp(a.numbers.data(), e.numbers.data(), e.numbers.size() * sizeof(double)))
      << what;
}

class OpGraph : public ::testing::TestWithParam<Instance> {
 protected:
  // Traces, executes twice, and compares with eager: results, and operands written in place.
  void compare(DType dtype, bool backward, bool symbolic = false) {
    const OpDef& op = *GetParam().op;
    const OpCase& op_case = *GetParam().op_case;
    const TensorList eager_inputs = make_inputs(op_case, dtype);
    TensorList dys;
    std::vector<int> from;
    if (backward) {
      const NoGradScope no_grad;
      const TensorList outputs = apply(op, make_inputs(op_case, dtype), op_case.attrs);
      dys = cotangents(op_case, outputs);
      from = gradient_outputs(op_case, outputs);
    }
    const TensorList expected = run_op(op, op_case, op_case.attrs, eager_inputs, dys);

    TensorList given = defined_ones(eager_inputs);
    const size_t num_operands = given.size();
    std::vector<TraceInput> inputs = describe_inputs(op, eager_inputs, symbolic);
    const auto run_traced = [&](std::span<const Tensor> traced) {
      const Attrs attrs = symbolic ? with_symbols(op, op_case.attrs, eager_inputs) : op_case.attrs;
      return run_op(op, op_case, attrs, spread(eager_inputs, traced.first(num_operands)),
                    traced.subspan(num_operands));
    };
    // Cotangents have the dims that the forward graph gives its outputs.
    const Graph forward = trace(inputs, {}, run_traced);
    for (size_t k = 0; k < dys.size(); ++k) {
      TraceInput dy{"dy" + std::to_string(k), dys[k].dtype(), {}};
      for (const Dim& dim : forward.values[forward.outputs[from[k]]].dims)
        dy.dims.push_back(to_string(dim));
      inputs.push_back(dy);
    }
    const Graph graph = trace(inputs, {}, run_traced);
    EXPECT_EQ(parse_graph(graph.to_string(), ops::find).hash(), graph.hash());
    Executor executor(graph);
    for (int repeat = 0; repeat < 2; ++repeat) {
      TensorList bound = defined_ones(make_inputs(op_case, dtype));
      for (const Tensor& dy : dys) bound.push_back(dy);
      const TensorList& actual = executor.run(bound);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i)
        expect_same_bits(actual[i], expected[i], fmt::format("output {}", i));
      const TensorList operands = spread(eager_inputs, bound);
      for (size_t i = 0; i < operands.size(); ++i)
        if ((op.writes >> i & 1u) != 0)
          expect_same_bits(operands[i], eager_inputs[i], fmt::format("written operand {}", i));
    }
  }

  std::vector<DType> dtypes() const {
    return has_float_operand(*GetParam().op_case) ? std::vector{DType::F32, DType::F64}
                                                  : std::vector{DType::F64};
  }
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

TEST_P(OpGraph, ForwardEqualsEager) {
  for (DType dtype : dtypes()) compare(dtype, false);
}

TEST_P(OpGraph, BackwardEqualsEager) {
  if (GetParam().op->backward == nullptr || gradient_inputs(*GetParam().op_case).empty())
    GTEST_SKIP() << "has no gradient";
  for (DType dtype : dtypes()) compare(dtype, true);
}

TEST_P(OpGraph, SymbolicForwardEqualsEager) { compare(DType::F64, false, true); }

TEST_P(OpGraph, SymbolicBackwardEqualsEager) {
  if (GetParam().op->backward == nullptr || gradient_inputs(*GetParam().op_case).empty())
    GTEST_SKIP() << "has no gradient";
  compare(DType::F64, true, true);
}

TEST_P(OpGraph, AttributesReadBackAsPrinted) {
  SymbolTable symbols;
  const Attrs& attrs = GetParam().op_case->attrs;
  EXPECT_EQ(GetParam().op->parse_attrs(attrs.to_string(), symbols), attrs);
}

INSTANTIATE_TEST_SUITE_P(All, OpGraph, ::testing::ValuesIn(instances()), instance_name);

}  // namespace
}  // namespace obelisk
