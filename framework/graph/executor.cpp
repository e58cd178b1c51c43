#include "framework/graph/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/base/scope.h"

namespace obelisk {
namespace {

std::string to_text(const SymbolValues& symbols) {
  std::string text;
  for (const auto& [name, value] : symbols)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

}  // namespace

void Executor::check_inputs(std::span<const Tensor> inputs) const {
  OBELISK_CHECK(inputs.size() == graph_.inputs.size(), ShapeError,
                "graph: {} inputs were expected; got {}", graph_.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const GraphValue& value = graph_.values[graph_.inputs[i]];
    OBELISK_CHECK(inputs[i].defined() && inputs[i].dtype() == value.dtype &&
                      inputs[i].num_dims() == value.dims.size() &&
                      (inputs[i].is_contiguous() || !value.contiguous),
                  ShapeError, "graph: input {} must be {} {}{}; got {}", value.name,
                  to_string(value.dtype), to_string(value.dims),
                  value.contiguous ? " and dense" : "", to_string(spec_of(inputs[i])));
  }
}

// Dims that are a symbol alone give it its value; then every dim must agree.
SymbolValues Executor::solve(std::span<const Tensor> inputs) const {
  SymbolValues symbols;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DimShape& dims = graph_.values[graph_.inputs[i]].dims;
    for (int d = 0; d < dims.size(); ++d)
      if (const std::string name = symbol_name(dims[d]); !name.empty())
        symbols.emplace(name, inputs[i].shape()[d]);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const GraphValue& value = graph_.values[graph_.inputs[i]];
    OBELISK_CHECK(inputs[i].shape() == evaluate(value.dims, symbols), ShapeError,
                  "graph: input {} is {}, where {} with {} was expected", value.name,
                  to_string(spec_of(inputs[i])), to_string(value.dims), to_text(symbols));
  }
  return symbols;
}

const ExecutionPlan& Executor::plan_for(std::span<const Tensor> inputs) {
  for (const Binding& binding : bindings_) {
    bool same = true;
    for (size_t i = 0; i < inputs.size() && same; ++i)
      same = binding.inputs[i].first == inputs[i].shape() &&
             binding.inputs[i].second == inputs[i].strides();
    if (same) return binding.plan;
  }
  Binding binding{{}, plan_execution(graph_, solve(inputs), inputs)};
  for (const Tensor& input : inputs) binding.inputs.emplace_back(input.shape(), input.strides());
  const int64_t bytes = std::max<int64_t>(binding.plan.memory.planned_bytes, 1);
  if (!arena_.defined() || arena_.numel() < bytes) {
    outputs_.clear();
    arena_ = Tensor();  // before the larger one is taken
    arena_ = empty({bytes}, DType::U8);
  }
  bindings_.push_back(std::move(binding));
  return bindings_.back().plan;
}

void Executor::place(int id, const PlannedValue& value) {
  const DType dtype = graph_.values[id].dtype;
  const bool in_arena = graph_.values[value.root].kind == ValueKind::Temporary;
  const Tensor& root = in_arena ? arena_ : values_[value.root];
  values_[id] = Tensor(new TensorImpl(root.storage(), root.impl().offset + value.offset,
                                      value.shape, value.strides, dtype, root.device()));
}

void Executor::run_node(size_t index, const ExecutionPlan& plan) {
  const GraphNode& node = graph_.nodes[index];
  if (node.op->view != nullptr) return;
  node_inputs_.clear();
  node_outputs_.clear();
  for (int id : node.inputs) node_inputs_.push_back(id < 0 ? Tensor() : values_[id]);
  for (int id : node.outputs) node_outputs_.push_back(values_[id]);
  ExecContext& context = ExecContext::current();
  const PathScope path(node.path);
  const OpScope scope(node.op->name);
  try {
    const Kernel kernel = context.device().kind == DeviceKind::Cpu ? node.op->cpu : node.op->cuda;
    OBELISK_CHECK(kernel != nullptr, DeviceError, "{}: this op has no kernel for device {}",
                  node.op->name, to_string(context.device()));
    kernel({context, node_inputs_, node_outputs_, plan.attrs[index]});
  } catch (Error& error) {
    error.add_place(node.path);
    throw;
  }
  for (size_t i = 0; i < node.inputs.size() && i < 32; ++i)
    if ((node.op->writes >> i & 1u) != 0 && node_inputs_[i].defined())
      node_inputs_[i].storage()->mark_written(node.op->name);
}

const TensorList& Executor::run(std::span<const Tensor> inputs) {
  check_inputs(inputs);
  const ExecutionPlan& plan = plan_for(inputs);
  planned_bytes_ = plan.memory.planned_bytes;
  outputs_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) values_[graph_.inputs[i]] = inputs[i].detach();
  for (size_t id = 0; id < graph_.values.size(); ++id) {
    const GraphValue& value = graph_.values[id];
    if (value.kind == ValueKind::Input) continue;
    if (value.kind == ValueKind::Temporary) {
      PlannedValue planned = plan.values[id];
      // Arena offsets are multiples of 64 bytes, so of every element's size.
      const PlannedValue& root = plan.values[planned.root];
      if (root.arena >= 0)
        planned.offset += root.arena / static_cast<int64_t>(size_of(value.dtype));
      place(static_cast<int>(id), planned);
    } else {
      OBELISK_CHECK(value.tensor.defined(), Bug, "bug: graph: no tensor is bound to {} {}",
                    to_string(value.kind), value.name);
      values_[id] = value.tensor;
    }
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) run_node(n, plan);
  for (int id : graph_.outputs) outputs_.push_back(id < 0 ? Tensor() : values_[id]);
  // Inputs are the caller's: nothing of them is held between runs, but where an output is one.
  for (Tensor& value : values_) value = Tensor();
  return outputs_;
}

}  // namespace obelisk
