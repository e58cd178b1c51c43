// Runs a graph: binds inputs, solves the symbols, plans the memory once a binding, runs the
// kernels. The same kernels in the same order as eager execution: the same bits.
#pragma once

#include <list>

#include "framework/graph/plan.h"

namespace obelisk {

class Executor {
 public:
  // The graph must outlive the executor, and hold a tensor for each parameter, gradient and
  // constant.
  explicit Executor(const Graph& graph) : graph_(graph), values_(graph.values.size()) {}

  // The graph's outputs, on the current context. Those that nodes made lie in the arena: they are
  // good until the next run. From the second run of a binding on, nothing is allocated.
  //
  // Throws ShapeError: "graph: 2 inputs were expected; got 1", "graph: input ids must be i64 [B, T]
  // and dense; got f32 [2, 3]", "graph: input targets is i64 [2, 3], where [B, T] with B=2 T=4 was
  // expected".
  const TensorList& run(std::span<const Tensor> inputs);

  // Of the last run's binding; zero before the first.
  int64_t planned_bytes() const { return planned_bytes_; }

 private:
  struct Binding {
    std::vector<std::pair<Shape, Strides>> inputs;
    ExecutionPlan plan;
  };
  void check_inputs(std::span<const Tensor> inputs) const;
  SymbolValues solve(std::span<const Tensor> inputs) const;
  const ExecutionPlan& plan_for(std::span<const Tensor> inputs);
  void place(int id, const PlannedValue& value);
  void run_node(size_t index, const ExecutionPlan& plan);

  const Graph& graph_;
  std::list<Binding> bindings_;
  Tensor arena_;  // U8, as large as the largest plan so far
  std::vector<Tensor> values_;
  std::vector<Tensor> node_inputs_, node_outputs_;
  TensorList outputs_;
  int64_t planned_bytes_ = 0;
};

}  // namespace obelisk
