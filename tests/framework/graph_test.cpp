#include <gtest/gtest.h>

#include "framework/graph/executor.h"
#include "framework/graph/parse.h"
#include "framework/graph/tracer.h"
#include "framework/op/full.h"
#include "ops/all.h"
#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/layout/layout.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

// y = x w, and the gradient of sum(2 y) for w, which has a buffer.
struct Model : Module {
  Model() : Module("net"), weight(*this, "weight", {2, 3}, Initial::ones()) {
    Tensor value = from_values<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
    value.set_requires_grad(true);
    value.set_grad(zeros({2, 3}, DType::F32));
    weight.set_value(value);
  }
  TensorList step(std::span<const Tensor> inputs, const Tensor& factor) {
    const PathScope scope(path());
    const Tensor y = ops::matmul(inputs[0], weight.value());
    ops::backward(ops::sum(ops::multiply(y, factor)));
    return {y.detach()};
  }
  Parameter weight;
};

const std::vector<TraceInput> kInputs{{"x", DType::F32, {"B", "2"}}};

class GraphTest : public ::testing::Test {
 protected:
  Graph make_graph() {
    return trace(kInputs, model_.parameters(),
                 [&](std::span<const Tensor> inputs) { return model_.step(inputs, factor_); });
  }
  ExecContext context_;
  ExecScope scope_{context_};
  Model model_;
  Tensor factor_ = full({}, DType::F32, 2.0);
};

constexpr const char* kText =
    R"(parameter %0 net.weight f32 [2, 3]
gradient %1 net.weight f32 [2, 3]
input %2 x f32 [B, 2]
constant %4 constant0 f32 [] = 2
%3 f32 [B, 3] = matmul(%2, %0, none) {transpose_a=false, transpose_b=false, sum_leading=false} in net
%5 f32 [B, 3] = multiply(%3, %4) {} in net
%6 f32 [] = sum(%5) {dims=3, keepdim=false, wide=false} in net
%7 f32 [] = full() {shape=[], dtype=f32, value=1} in net
%8 f32 [1, 1] = reshape(%7) {shape=[1, 1]} in net
%9 f32 [B, 3] = broadcast_to(%8) {shape=[B, 3]} in net
%10 f32 [B, 3] = multiply(%9, %4) {} in net
matmul_accumulate(%1, %2, %10) {transpose_a=true, transpose_b=false, sum_leading=true} in net
return %3
)";

TEST_F(GraphTest, PrintsWhatWasTraced) { EXPECT_EQ(make_graph().to_string(), kText); }

// FNV-1a of the text above, computed apart from this program.
TEST_F(GraphTest, HashesTheTextAlone) {
  EXPECT_EQ(make_graph().hash(), make_graph().hash());
  EXPECT_EQ(make_graph().hash(), 0x65696f1c390b5f09u);
  const uint64_t before = make_graph().hash();
  factor_ = full({}, DType::F32, 2.5);
  EXPECT_NE(make_graph().hash(), before);
}

TEST_F(GraphTest, ReadsItsTextBackAndRunsIt) {
  Graph graph = parse_graph(kText, ops::find);
  EXPECT_EQ(graph.to_string(), kText);
  EXPECT_EQ(graph.hash(), make_graph().hash());
  const Tensor x = from_values<float>(std::vector<float>{1, 0, 0, 1, 1, 1}, {3, 2});
  Executor unbound(graph);
  EXPECT_ERROR(unbound.run({&x, 1}), Bug, "bug: graph: no tensor is bound to parameter net.weight");
  bind_parameters(graph, model_.parameters());
  Executor executor(graph);
  const Tensor y = executor.run({&x, 1})[0];
  const std::vector<float> values(y.data<float>(), y.data<float>() + 9);
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6, 5, 7, 9}));
  const float* gradient = model_.weight.value().grad().data<float>();
  EXPECT_EQ(std::vector<float>(gradient, gradient + 6), std::vector<float>(6, 4.0f));
}

TEST_F(GraphTest, BindsParametersByPathAndShape) {
  Graph graph = parse_graph("parameter %0 net.bias f32 [3]\nreturn %0\n", ops::find);
  EXPECT_ERROR(bind_parameters(graph, model_.parameters()), ShapeError,
               "graph: parameter net.bias f32 [3] has no counterpart in the model");
}

TEST_F(GraphTest, RefusesMalformedText) {
  const auto expect = [](const char* text, const char* message) {
    EXPECT_ERROR(parse_graph(text, ops::find), ValueError, message);
  };
  expect("", "graph: line 0: a return must come at last");
  expect("return", "graph: line 1: must end with a line end");
  expect("return\nreturn\n", "graph: line 2: nothing may follow the return");
  expect("return x\n", "graph: line 1: '%' must stand before 'x'");
  expect("return %0\n", "graph: line 1: value %0 is used before it is made");
  expect("return %-1\n", "graph: line 1: a value must have a number");
  expect("returned\n", "graph: line 1: a return must list values");
  expect("input %1 x f32 [B]\nreturn %1\n", "graph: line 2: value %0 is missing");
  expect("input %0 x f32 [B]\ninput %0 y f32 [B]\nreturn\n",
         "graph: line 2: value %0 is defined twice");
  expect("input %0 x f33 [B]\nreturn\n", "graph: line 1: attributes: must be a dtype; got 'f33'");
  expect("input %0 x f32 [B, 2B]\nreturn\n",
         "graph: line 1: dim: must read like 4*B*T - 1; got '2B'");
  expect("input %0 x f32 [B] wide\nreturn\n", "graph: line 1: ' wide' is too much");
  expect("constant %0 c f32 [2] = 1\nreturn\n",
         "graph: line 1: constant: must be 2 numbers; got '1'");
  expect("input %0 x f32 [B]\n%1 f32 [B] = gellu(%0) {}\nreturn %1\n",
         "graph: line 2: no op is called 'gellu'");
  expect("input %0 x f32 [B]\n%1 f32 [B] = gelu(%0) {form=fast}\nreturn %1\n",
         "graph: line 2: attributes: must be a name of the enum; got 'fast'");
  expect("input %0 x f32 [B]\n%1 f32 [B] = gelu(%0) {}\nreturn %1\n",
         "graph: line 2: attributes: must be fields with 'form' next; got '{}'");
  expect("input %0 x f32 [B]\n%1 f32 [B] = exp(%0) {a=1}\nreturn %1\n",
         "graph: line 2: attributes: must be the op's own fields; got '{a=1}'");
  expect("input %0 x f32 [B]\n%1 f32 [B] = add(%0) {}\nreturn %1\n",
         "graph: line 2: add takes 2 operands");
  expect("input %0 x f32 [B]\n%1 f32 [2] = exp(%0) {}\nreturn %1\n",
         "graph: line 2: exp makes f32 [B]");
  expect("input %0 x f32 [B]\n%1 f32 [2] = reshape(%0) {shape=[2]}\nreturn %1\n",
         "graph: line 2: reshape: number of elements must stay the same; got x f32 [B], "
         "{shape=[2]}");
  expect("constant %0 c f32 [1] = 1\nfill(%0) {value=1}\nreturn %0\n",
         "graph: line 2: fill writes the constant %0");
}

TEST_F(GraphTest, RefusesInputsThatDoNotFit) {
  const TraceInput inputs[] = {{"a", DType::F32, {"B", "T"}}, {"b", DType::F32, {"2*B", "T"}}};
  const Graph graph = trace(inputs, {}, [](std::span<const Tensor> traced) -> TensorList {
    return {ops::concat({traced[0], traced[1]}, 0)};
  });
  Executor executor(graph);
  const auto run = [&](std::vector<Tensor> tensors) { executor.run(tensors); };
  const Tensor a = zeros({2, 4}, DType::F32);
  EXPECT_ERROR(run({a}), ShapeError, "graph: 2 inputs were expected; got 1");
  EXPECT_ERROR(run({a, zeros({4, 4}, DType::F64)}), ShapeError,
               "graph: input b must be f32 [2*B, T] and dense; got f64 [4, 4]");
  EXPECT_ERROR(run({a, Tensor()}), ShapeError,
               "graph: input b must be f32 [2*B, T] and dense; got absent");
  EXPECT_ERROR(run({a, ops::slice(zeros({4, 5}, DType::F32), 1, 0, 4)}), ShapeError,
               "graph: input b must be f32 [2*B, T] and dense; got f32 [4, 4]");
  EXPECT_ERROR(run({a, zeros({5, 4}, DType::F32)}), ShapeError,
               "graph: input b is f32 [5, 4], where [2*B, T] with B=2 T=4 was expected");
  run({a, zeros({4, 4}, DType::F32)});
}

TEST_F(GraphTest, ChecksWhatSymbolsCouldNotProveAtEachRun) {
  const Tensor table = zeros({3, 2}, DType::F32);
  const TraceInput inputs[] = {{"x", DType::F32, {"T", "2"}}};
  const Graph graph = trace(inputs, {}, [&](std::span<const Tensor> traced) -> TensorList {
    return {ops::add(traced[0], ops::slice(table, 0, 0, traced[0].dims()[0]))};
  });
  Executor executor(graph);
  const Tensor fits = zeros({3, 2}, DType::F32), longer = zeros({4, 2}, DType::F32);
  executor.run({&fits, 1});
  EXPECT_ERROR(executor.run({&longer, 1}), ShapeError,
               "slice: must satisfy 0 <= begin <= end <= size of an existing dim; got x f32 [3, "
               "2], {dim=0, begin=0, end=4}");
}

TEST_F(GraphTest, RefusesFunctionsThatLookAtValuesOrSizes) {
  const auto traced = [](const TracedFunction& function) { return trace(kInputs, {}, function); };
  EXPECT_ERROR(traced([](auto inputs) -> TensorList {
                 inputs[0].template data<float>();
                 return {};
               }),
               Bug,
               "bug: the values of a traced tensor were asked for; a traced function must not look "
               "at data");
  EXPECT_ERROR(traced([](auto inputs) -> TensorList {
                 inputs[0].shape();
                 return {};
               }),
               Bug, "bug: the shape [B, 2] of a traced tensor was used as numbers; ask for dims()");
  EXPECT_ERROR(traced([](auto) -> TensorList { return {zeros({1025}, DType::F32)}; }), Bug,
               "bug: trace: a captured tensor that is no parameter must have at most 4096 bytes; "
               "got f32 [1025]; make it an input");
  EXPECT_ERROR(traced([](auto inputs) -> TensorList {
                 return {inputs[0].alias({1, 2}, {2, 1}, 0)};
               }),
               Bug, "bug: alias of a traced tensor, which no graph would know of; use an op");
  EXPECT_ERROR(traced([](auto) -> TensorList {
                 return {zeros({2, 4}, DType::F32).alias({2, 2}, {4, 1}, 0)};
               }),
               Bug,
               "bug: trace: a captured tensor that is no parameter must be contiguous; got f32 [2, "
               "2]");
  EXPECT_ERROR(traced([&](auto) -> TensorList {
                 ops::fill(factor_, 1.0);
                 return {};
               }),
               Bug, "bug: trace: a constant of the graph is written by fill; make it an input");
  EXPECT_ERROR(traced([&](auto) -> TensorList {
                 make_graph();
                 return {};
               }),
               Bug, "bug: trace: inside a traced function");
  Tensor leaf = full({2}, DType::F32, 1.0);
  leaf.set_requires_grad(true);
  EXPECT_ERROR(traced([&](auto inputs) -> TensorList {
                 ops::backward(ops::sum(ops::multiply(inputs[0], leaf)));
                 return {};
               }),
               Bug,
               "bug: trace: a captured tensor f32 [2] wants a gradient and has no buffer for it");
  EXPECT_FALSE(leaf.grad().defined());
  EXPECT_ERROR(trace(std::vector<TraceInput>{{"two words", DType::F32, {}}}, {},
                     [](auto) -> TensorList { return {}; }),
               ValueError, "trace: an input's name must be one word; got 'two words'");
  EXPECT_EQ(Tracer::current(), nullptr);
  Tensor foreign;
  traced([&](auto inputs) -> TensorList {
    foreign = inputs[0];
    return {};
  });
  EXPECT_ERROR(traced([&](auto) -> TensorList { return {foreign}; }), Bug,
               "bug: trace: a tensor of another graph was used");
}

TEST_F(GraphTest, FullRefusesOtherDtypes) {
  EXPECT_ERROR(apply(kFull, std::span<const Tensor>(), FullAttrs{{2}, DType::U8, 1.0}), ShapeError,
               "full: dtype must be f32, bf16, f64 or i64; got {shape=[2], dtype=u8, value=1}");
}

// A chain of four needs two buffers at a time; views and outputs keep theirs.
TEST_F(GraphTest, PlansMemoryByLiveness) {
  const TraceInput inputs[] = {{"x", DType::F32, {"N", "16"}}};
  const Graph chain = trace(inputs, {}, [](std::span<const Tensor> traced) -> TensorList {
    return {ops::exp(ops::exp(ops::exp(ops::exp(traced[0]))))};
  });
  const MemoryPlan plan = plan_memory(chain, {{"N", 10}});
  EXPECT_EQ(plan.planned_bytes, 2 * 640);
  EXPECT_EQ(plan.peak_bytes, 2 * 640);
  ASSERT_EQ(plan.at_peak.size(), 1u);
  EXPECT_EQ(plan.at_peak[0].op, "exp");
  EXPECT_EQ(plan.at_peak[0].bytes, 2 * 640);
  EXPECT_ERROR(plan_memory(chain, {}), ShapeError, "dim: symbol N of N has no value");
  const Graph views = trace(inputs, {}, [](std::span<const Tensor> traced) -> TensorList {
    const Tensor first = ops::exp(traced[0]);
    const TensorList halves = ops::split(first, {8, 8}, 1);
    return {ops::add(ops::exp(ops::exp(traced[0])), traced[0]), halves[1]};
  });
  EXPECT_EQ(plan_memory(views, {{"N", 10}}).planned_bytes, 3 * 640);
}

TEST_F(GraphTest, ReturnsInputsViewsAndNothing) {
  const Graph graph = trace(kInputs, {}, [](std::span<const Tensor> traced) -> TensorList {
    return {traced[0], Tensor(), ops::slice(traced[0], 1, 1, 2)};
  });
  Executor executor(graph);
  const Tensor x = from_values<float>(std::vector<float>{1, 2, 3, 4}, {2, 2});
  const TensorList& outputs = executor.run({&x, 1});
  EXPECT_EQ(outputs[0].raw_data(), x.raw_data());
  EXPECT_FALSE(outputs[1].defined());
  EXPECT_EQ(outputs[2].data<float>(), x.data<float>() + 1);
  EXPECT_EQ(outputs[2].strides(), (Strides{2, 1}));
  EXPECT_EQ(executor.planned_bytes(), 0);
}

}  // namespace
}  // namespace obelisk
