#include "framework/autograd/engine.h"

#include <algorithm>
#include <memory>

#include "framework/base/scope.h"
#include "framework/op/full.h"

namespace obelisk {
namespace {

// Nodes whose gradients are arriving, deepest first; among equals the one queued first. Kept by the
// context, so that a training step reuses its memory.
struct Queue {
  struct Item {
    NodePtr node;
    int64_t order;
  };
  std::vector<Item> heap;
  int64_t next_order = 0;

  static bool later(const Item& a, const Item& b) {
    if (a.node->depth != b.node->depth) return a.node->depth < b.node->depth;
    return a.order > b.order;
  }
  void push(const NodePtr& node) {
    if (node->queued) return;
    node->queued = true;
    heap.push_back({node, next_order++});
    std::push_heap(heap.begin(), heap.end(), later);
  }
  NodePtr pop() {
    std::pop_heap(heap.begin(), heap.end(), later);
    NodePtr node = std::move(heap.back().node);
    heap.pop_back();
    return node;
  }
  void reset() {
    heap.clear();
    next_order = 0;
  }
};

// Nobody else can see the bytes, so they may be changed in place.
bool is_exclusive(const Tensor& tensor) {
  return tensor.impl_ptr()->use_count() == 1 && tensor.impl().storage->use_count() == 1 &&
         tensor.is_contiguous();
}

class Engine {
 public:
  Engine(const GradientOps& ops, Queue& queue) : ops_(ops), queue_(queue) { queue_.reset(); }
  ~Engine() { queue_.reset(); }  // also after an exception

  void run(std::span<const Tensor> roots, std::span<const Tensor> seeds) {
    for (size_t i = 0; i < roots.size(); ++i)
      if (seeds[i].defined() && roots[i].impl().grad_fn != nullptr)
        deliver(Edge{roots[i].impl().grad_fn, roots[i].impl().output_index, Tensor()},
                Tensor(seeds[i]));
    while (!queue_.heap.empty()) process(*queue_.pop());
  }

 private:
  void deliver(const Edge& edge, Tensor gradient) {
    if (edge.node != nullptr) {
      OBELISK_CHECK(!edge.node->released, Bug,
                    "bug: backward of {} ran already and freed its tensors; run forward again",
                    edge.node->op.name);
      Tensor& slot = edge.node->grad_outputs[edge.output_index];
      const DType dtype = edge.node->outputs[edge.output_index].tensor.dtype();
      add(slot, gradient.dtype() == dtype ? std::move(gradient) : ops_.cast(gradient, dtype));
      queue_.push(edge.node);
    } else if (edge.leaf.defined()) {
      add_to_leaf(edge.leaf, std::move(gradient));
    }
  }

  void add(Tensor& sum, Tensor gradient) {
    if (!sum.defined()) {
      sum = std::move(gradient);
    } else if (is_exclusive(sum)) {
      apply(*ops_.accumulate, {sum, gradient}, NoAttrs{});
    } else if (is_exclusive(gradient)) {
      apply(*ops_.accumulate, {gradient, sum}, NoAttrs{});
      sum = std::move(gradient);
    } else {
      sum = apply(*ops_.add, {sum, gradient}, NoAttrs{})[0];
    }
  }

  void add_to_leaf(const Tensor& leaf, Tensor gradient) {
    Tensor target = leaf.grad();
    const DType dtype = sum_dtype(leaf.dtype());
    if (!target.defined() && gradient.dtype() == dtype && is_exclusive(gradient)) {
      leaf.impl().grad = gradient.impl_ptr();
      return;
    }
    if (!target.defined()) {
      target = zeros_like(leaf, dtype);
      leaf.impl().grad = target.impl_ptr();
    }
    apply(*ops_.accumulate, {target, gradient}, NoAttrs{});
  }

  void process(Node& node) {
    static const std::string kNoPath;
    PathScope path(node.path != nullptr ? *node.path : kNoPath);
    const size_t n = node.inputs.size();
    TensorList inputs, outputs, grad_inputs(n), destinations(n);
    SmallVector<bool, 8> needed(n, false);
    for (const SavedTensor& saved : node.inputs) inputs.push_back(checked(node, saved));
    for (const SavedTensor& saved : node.outputs) outputs.push_back(checked(node, saved));
    for (size_t i = 0; i < n; ++i) {
      const Edge& edge = node.edges[i];
      needed[i] = edge.node != nullptr || edge.leaf.defined();
      if (edge.leaf.defined()) destinations[i] = edge.leaf.grad();
    }
    try {
      node.op.backward({node.attrs, inputs, outputs, node.grad_outputs, grad_inputs, destinations,
                        std::span<const bool>(needed.data(), n)});
    } catch (Error& error) {
      error.add_place("backward of " + describe_node(node));
      throw;
    }
    const auto edges = std::move(node.edges);
    release(node);
    inputs.clear();
    outputs.clear();
    for (size_t i = 0; i < n; ++i)
      if (grad_inputs[i].defined()) deliver(edges[i], std::move(grad_inputs[i]));
  }

  static Tensor checked(const Node& node, const SavedTensor& saved) {
    if (saved.producer != nullptr) return made_again(*saved.producer, saved.output_index);
    if (saved.tensor.defined() && saved.tensor.has_data()) {
      const StoragePtr storage = saved.tensor.storage();
      OBELISK_CHECK(storage->version() == saved.version, Bug,
                    "bug: a tensor that {} saved for backward was changed in place by {}",
                    describe_node(node), storage->last_writer());
    }
    return saved.tensor;
  }

  static Tensor made_again(const Node& node, int output_index) {
    TensorList inputs;
    for (const SavedTensor& saved : node.inputs) inputs.push_back(checked(node, saved));
    return apply(node.op, inputs, node.attrs)[output_index];
  }

  static std::string describe_node(const Node& node) {
    std::string text = node.op.name;
    if (node.path != nullptr && !node.path->empty()) text += " in " + *node.path;
    return text;
  }

  static void release(Node& node) {
    node.inputs.clear();
    node.outputs.clear();
    node.edges.clear();
    node.grad_outputs.clear();
    node.released = true;
    node.queued = false;
  }

  const GradientOps& ops_;
  Queue& queue_;
};

// One queue for each depth of nesting, kept so that a step reuses their memory.
struct Queues {
  std::vector<std::unique_ptr<Queue>> by_depth;
};

// Of the engine that runs on this thread.
struct Running {
  const GradientOps* ops;
  size_t depth;
};
thread_local Running running = {nullptr, 0};

void run_engine(const Running& now, std::span<const Tensor> roots, std::span<const Tensor> seeds) {
  auto& queues = ExecContext::current().state<Queues>().by_depth;
  while (queues.size() <= now.depth) queues.push_back(std::make_unique<Queue>());
  struct Restore {
    Running outer;
    ~Restore() { running = outer; }
  } const restore{running};
  running = now;
  const NoGradScope no_grad;
  Engine(*now.ops, *queues[now.depth]).run(roots, seeds);
}

}  // namespace

void run_backward(const Tensor& root, const Tensor& seed, const GradientOps& gradient_ops) {
  OBELISK_CHECK(product(root.dims()) == Dim(1), ShapeError,
                "backward: the root must be a scalar; got {}; reduce it first",
                to_string(root.dims()));
  OBELISK_CHECK(!root.is_leaf(), Bug,
                "bug: backward from a tensor that no recorded op made; does an input require a "
                "gradient, and is no NoGradScope open?");
  OBELISK_CHECK(!seed.defined() || seed.dims() == root.dims(), ShapeError,
                "backward: the seed's shape must equal the root's; got {} and {}",
                to_string(seed.dims()), to_string(root.dims()));
  const Tensor start = seed.defined() ? seed : full_like(root, 1.0);
  run_engine({&gradient_ops, 0}, {&root, 1}, {&start, 1});
}

void run_nested_backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients) {
  OBELISK_CHECK(running.ops != nullptr, Bug, "bug: nested backward outside of backward");
  run_engine({running.ops, running.depth + 1}, outputs, gradients);
}

}  // namespace obelisk
