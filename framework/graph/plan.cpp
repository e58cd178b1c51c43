#include "framework/graph/plan.h"

#include <algorithm>
#include <map>

namespace obelisk {
namespace {

// A cache line, and the widest vector: as the allocator aligns.
constexpr int64_t kAlignment = 64;

// First and last node that use a root's memory, both included.
struct Life {
  int first = -1;
  int last = -1;
};

// Shape and strides without bytes, for shape and view rules.
Tensor layout_of(const PlannedValue& value, DType dtype) {
  return Tensor(new TensorImpl(nullptr, value.offset, value.shape, value.strides, dtype, Device{}));
}

void plan_node(const Graph& graph, const SymbolValues& symbols, size_t index, ExecutionPlan& plan) {
  const GraphNode& node = graph.nodes[index];
  const Attrs attrs = node.attrs.with_dims([&](Dim dim) { return Dim(evaluate(dim, symbols)); });
  SpecList inputs, outputs;
  for (int id : node.inputs) {
    if (id < 0) {
      inputs.push_back({{}, DType::F32, false});
    } else {
      inputs.push_back({to_dims(plan.values[id].shape), graph.values[id].dtype, true});
    }
  }
  TensorList views;
  try {
    // Again, with numbers: what symbols could not prove is checked here.
    node.op->infer({node.op->name, node.op->input_names, inputs, attrs, outputs});
    if (node.op->view != nullptr) {
      const int id = node.inputs[0];
      node.op->view(layout_of(plan.values[id], graph.values[id].dtype), attrs, views);
    }
  } catch (Error& error) {
    error.add_place(node.path);
    throw;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const int id = node.outputs[i];
    PlannedValue& value = plan.values[id];
    value.shape = to_numbers(outputs[i].shape);
    OBELISK_CHECK(value.shape == evaluate(graph.values[id].dims, symbols), Bug,
                  "bug: graph: {} gave {} for the traced shape {}", node.op->name,
                  to_string(value.shape), to_string(graph.values[id].dims));
    value.strides = views.empty() ? contiguous_strides(value.shape) : views[i].strides();
    value.root = views.empty() ? id : plan.values[node.inputs[0]].root;
    value.offset = views.empty() ? 0 : views[i].impl().offset;
  }
  plan.attrs.push_back(attrs);
}

std::vector<Life> find_lives(const Graph& graph, const ExecutionPlan& plan) {
  std::vector<Life> lives(graph.values.size());
  const int end = static_cast<int>(graph.nodes.size());
  for (int n = 0; n < end; ++n) {
    const GraphNode& node = graph.nodes[n];
    const auto use = [&](int id) {
      if (id < 0) return;
      Life& life = lives[plan.values[id].root];
      if (life.first < 0) life.first = n;
      life.last = n;
    };
    std::for_each(node.inputs.begin(), node.inputs.end(), use);
    std::for_each(node.outputs.begin(), node.outputs.end(), use);
  }
  for (int id : graph.outputs)
    if (id >= 0) lives[plan.values[id].root].last = end;
  return lives;
}

// Largest first, each at the lowest offset where nobody alive at the same time lies.
void place(const std::vector<Life>& lives, std::vector<int> roots, ExecutionPlan& plan) {
  std::stable_sort(roots.begin(), roots.end(),
                   [&](int a, int b) { return plan.values[a].bytes > plan.values[b].bytes; });
  std::vector<int> placed;  // by offset
  for (int id : roots) {
    int64_t offset = 0;
    for (int other : placed) {
      if (lives[other].last < lives[id].first || lives[id].last < lives[other].first) continue;
      if (plan.values[other].arena >= offset + plan.values[id].bytes) break;
      offset = std::max(offset, plan.values[other].arena + plan.values[other].bytes);
    }
    plan.values[id].arena = offset;
    plan.memory.planned_bytes = std::max(plan.memory.planned_bytes, offset + plan.values[id].bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), id,
                         [&](int a, int b) { return plan.values[a].arena < plan.values[b].arena; }),
        id);
  }
}

void find_peak(const Graph& graph, const std::vector<Life>& lives, const std::vector<int>& roots,
               ExecutionPlan& plan) {
  std::vector<int64_t> change(graph.nodes.size() + 2, 0);
  for (int id : roots) {
    change[lives[id].first] += plan.values[id].bytes;
    change[lives[id].last + 1] -= plan.values[id].bytes;
  }
  int64_t alive = 0;
  int peak_node = 0;
  for (size_t n = 0; n < change.size(); ++n) {
    alive += change[n];
    if (alive > plan.memory.peak_bytes) peak_node = static_cast<int>(n);
    plan.memory.peak_bytes = std::max(plan.memory.peak_bytes, alive);
  }
  std::map<std::pair<std::string, std::string>, int64_t> uses;
  for (int id : roots) {
    if (lives[id].first > peak_node || lives[id].last < peak_node) continue;
    const GraphNode& maker = graph.nodes[lives[id].first];
    uses[{maker.op->name, maker.path}] += plan.values[id].bytes;
  }
  for (const auto& [key, bytes] : uses)
    plan.memory.at_peak.push_back({key.first, key.second, bytes});
  std::stable_sort(plan.memory.at_peak.begin(), plan.memory.at_peak.end(),
                   [](const MemoryUse& a, const MemoryUse& b) { return a.bytes > b.bytes; });
}

}  // namespace

ExecutionPlan plan_execution(const Graph& graph, const SymbolValues& symbols,
                             std::span<const Tensor> inputs) {
  ExecutionPlan plan;
  plan.values.resize(graph.values.size());
  for (size_t id = 0; id < graph.values.size(); ++id) {
    PlannedValue& value = plan.values[id];
    value.root = static_cast<int>(id);
    if (graph.values[id].kind == ValueKind::Temporary) continue;
    value.shape = evaluate(graph.values[id].dims, symbols);
    value.strides = contiguous_strides(value.shape);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    plan.values[graph.inputs[i]].strides = inputs[i].strides();
  for (size_t n = 0; n < graph.nodes.size(); ++n) plan_node(graph, symbols, n, plan);
  const std::vector<Life> lives = find_lives(graph, plan);
  std::vector<int> roots;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    PlannedValue& value = plan.values[id];
    if (graph.values[id].kind != ValueKind::Temporary || value.root != static_cast<int>(id))
      continue;
    const int64_t bytes =
        num_elements(value.shape) * static_cast<int64_t>(size_of(graph.values[id].dtype));
    value.bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    roots.push_back(static_cast<int>(id));
  }
  place(lives, roots, plan);
  find_peak(graph, lives, roots, plan);
  return plan;
}

MemoryPlan plan_memory(const Graph& graph, const SymbolValues& symbols) {
  return plan_execution(graph, symbols, {}).memory;
}

}  // namespace obelisk
