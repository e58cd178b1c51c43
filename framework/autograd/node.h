// Node: one recorded application of an op; the graph of nodes is what backward walks.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk {

class Node;
using NodePtr = boost::intrusive_ptr<Node>;

// Whether apply() records. A thread-local scope; gradients are on by default.
class NoGradScope {
 public:
  NoGradScope();
  ~NoGradScope();
  NoGradScope(const NoGradScope&) = delete;
  NoGradScope& operator=(const NoGradScope&) = delete;
  static bool grad_enabled();

 private:
  bool outer_;
};

// Turns recording on again inside a NoGradScope: backward opens one, and recompute runs forward
// inside backward.
class GradScope {
 public:
  GradScope();
  ~GradScope();
  GradScope(const GradScope&) = delete;
  GradScope& operator=(const GradScope&) = delete;

 private:
  bool outer_;
};

// A tensor as it was at forward time. Holds no autograd state: nodes own each other through edges,
// and, under selective recompute, through `producer`.
struct SavedTensor {
  Tensor tensor;
  uint32_t version = 0;
  // Not null: `tensor` has no data, and is output `output_index` of this node's op, to be made
  // again (selective recompute).
  NodePtr producer = nullptr;
  int output_index = 0;
};

// Where the gradient of an input goes: to a node's output, to a leaf, or nowhere (both null).
struct Edge {
  NodePtr node;
  int output_index = 0;
  Tensor leaf;
};

class Node : public boost::intrusive_ref_counter<Node>, public Pooled<Node> {
 public:
  Node(const OpDef& op, const Attrs& attrs, std::span<const Tensor> inputs,
       std::span<const Tensor> outputs);
  // Frees a graph of any depth without recursion.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const OpDef& op;
  const Attrs attrs;
  SmallVector<SavedTensor, 4> inputs;
  SmallVector<SavedTensor, 4> outputs;
  SmallVector<Edge, 4> edges;
  SmallVector<Tensor, 4> grad_outputs;
  const std::string* path;  // the module's, null outside any
  // Longer than that of every node this one depends on: decreasing depth is a topological order.
  int64_t depth = 0;
  bool queued = false;    // by the engine
  bool released = false;  // backward has run and the saved tensors are gone
};

// Records the application of an op: its float outputs get a new node as their grad_fn.
void record_node(const OpDef& op, const Attrs& attrs, std::span<const Tensor> inputs,
                 TensorList& outputs);

// Bytes held by the saved tensors of the graph below `root`, by op name: {"gelu", 12345}, largest
// first. Storage shared by several nodes is counted once, for the node met first.
std::vector<std::pair<std::string, int64_t>> saved_bytes_by_op(const Tensor& root);

}  // namespace obelisk
