#include "framework/autograd/node.h"

#include <algorithm>
#include <map>
#include <set>

#include "framework/autograd/recompute.h"
#include "framework/base/scope.h"

namespace obelisk {
namespace {

thread_local bool grad_mode = true;

bool has(uint32_t mask, size_t i) { return i < 32 && (mask >> i & 1u) != 0; }

// Every input of the op is saved with its values, so that it can run again.
bool can_run_again(const Node& node) {
  if (node.op.fusion != Fusion::Elementwise || node.op.cpu == nullptr || node.op.writes != 0)
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [](const SavedTensor& saved) {
    return !saved.tensor.defined() || (saved.tensor.has_data() && saved.producer == nullptr);
  });
}

SavedTensor save(const Tensor& tensor, bool with_values) {
  if (!tensor.defined()) return {};
  if (!with_values) return {tensor.metadata(), 0};
  const NodePtr& producer = tensor.impl().grad_fn;
  if (SelectiveRecomputeScope::enabled() && producer != nullptr && can_run_again(*producer))
    return {tensor.metadata(), 0, producer, tensor.impl().output_index};
  return {tensor.detach(), tensor.storage()->version()};
}

Edge edge_to(const Tensor& input) {
  if (!input.defined() || !input.requires_grad()) return {};
  if (input.is_leaf()) return {nullptr, 0, input};
  return {input.impl().grad_fn, input.impl().output_index, Tensor()};
}

}  // namespace

NoGradScope::NoGradScope() : outer_(grad_mode) { grad_mode = false; }
NoGradScope::~NoGradScope() { grad_mode = outer_; }
GradScope::GradScope() : outer_(grad_mode) { grad_mode = true; }
GradScope::~GradScope() { grad_mode = outer_; }
bool NoGradScope::grad_enabled() { return grad_mode; }

Node::Node(const OpDef& op_in, const Attrs& attrs_in, std::span<const Tensor> inputs_in,
           std::span<const Tensor> outputs_in)
    : op(op_in), attrs(attrs_in), path(PathScope::current()) {
  for (size_t i = 0; i < inputs_in.size(); ++i) {
    inputs.push_back(save(inputs_in[i], has(op.saved_inputs, i)));
    edges.push_back(edge_to(inputs_in[i]));
    if (edges.back().node != nullptr) depth = std::max(depth, edges.back().node->depth + 1);
  }
  for (size_t i = 0; i < outputs_in.size(); ++i)
    outputs.push_back(save(outputs_in[i], has(op.saved_outputs, i)));
  grad_outputs.resize(outputs_in.size());
}

Node::~Node() {
  // Take over the edges of every node that only this graph still holds, so that none of them
  // destroys another.
  SmallVector<NodePtr, 16> dying;
  auto take_edges = [&](Node& node) {
    for (Edge& edge : node.edges)
      if (edge.node != nullptr) dying.push_back(std::move(edge.node));
    node.edges.clear();
    for (SavedTensor& saved : node.inputs)
      if (saved.producer != nullptr) dying.push_back(std::move(saved.producer));
  };
  take_edges(*this);
  while (!dying.empty()) {
    const NodePtr node = std::move(dying.back());
    dying.pop_back();
    if (node->use_count() == 1) take_edges(*node);
  }
}

void record_node(const OpDef& op, const Attrs& attrs, std::span<const Tensor> inputs,
                 TensorList& outputs) {
  NodePtr node(new Node(op, attrs, inputs, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_float(outputs[i].dtype())) continue;
    TensorImpl& impl = outputs[i].impl();
    impl.requires_grad = true;
    impl.grad_fn = node;
    impl.output_index = static_cast<int>(i);
  }
}

std::vector<std::pair<std::string, int64_t>> saved_bytes_by_op(const Tensor& root) {
  std::map<std::string, int64_t> bytes;
  std::set<const Node*> seen_nodes;
  std::set<const Storage*> seen_storages;
  std::vector<const Node*> pending{root.impl().grad_fn.get()};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node == nullptr || !seen_nodes.insert(node).second) continue;
    auto count = [&](const SavedTensor& saved) {
      if (!saved.tensor.defined() || !saved.tensor.has_data()) return;
      const StoragePtr storage = saved.tensor.storage();
      if (seen_storages.insert(storage.get()).second)
        bytes[node->op.name] += static_cast<int64_t>(storage->bytes());
    };
    std::for_each(node->inputs.begin(), node->inputs.end(), count);
    std::for_each(node->outputs.begin(), node->outputs.end(), count);
    for (const Edge& edge : node->edges) pending.push_back(edge.node.get());
  }
  std::vector<std::pair<std::string, int64_t>> sorted(bytes.begin(), bytes.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

}  // namespace obelisk
