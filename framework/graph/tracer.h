// trace(): runs a function on tensors that have a shape and no values, and writes down the ops it
// applies. Backward rules are ops, so a function that calls ops::backward gives the backward graph
// as well.
//
// Traced tensors are good inside the function only. It must not look at values, nor decide by a
// symbolic size: Tensor::data() and Tensor::shape() then throw. Sizes that flow into other shapes
// are asked for by Tensor::dims().
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <tuple>

#include "framework/graph/graph.h"
#include "framework/module/module.h"

namespace obelisk {

class Tracer;

// What makes a tensor a value of a graph in the making.
struct TracedValue {
  std::shared_ptr<const void> trace;  // which one; held, so that no later one has its address
  int id;
  DimShape dims;
  mutable std::atomic<int> references = 0;
};

struct TraceInput {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::string> dims;  // {"B", "T", "3"}: symbols, numbers, expressions
  bool contiguous = true;         // false: bound tensors may have any strides
};

using TracedFunction = std::function<TensorList(std::span<const Tensor> inputs)>;

// The graph of `function`. `parameters` are tensors it may use without being given them; any other
// tensor that it captures becomes a constant of the graph, and must be small. Needs an ExecScope,
// whose device's kernels the graph will run. Symbols stand for any size from 0 on; rules between
// sizes that a symbol cannot prove are checked at each run.
//
// Throws Bug: "bug: trace: a captured tensor that is no parameter must have at most 4096 bytes;
// ...", "bug: trace: a constant of the graph is written by ...", "bug: trace: a captured tensor ...
// wants a gradient and has no buffer for it", "bug: trace: inside a traced function".
Graph trace(std::span<const TraceInput> inputs, std::span<Parameter* const> parameters,
            const TracedFunction& function);

// Notes what apply() is asked to do. At most one a thread; set by trace() only.
class Tracer {
 public:
  explicit Tracer(Graph& graph, std::span<Parameter* const> parameters);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  static Tracer* current();  // null outside trace()

  // For symbols that no input's dims bring along.
  SymbolTable& symbols() const { return *graph_.symbols; }

  Tensor add_input(const TraceInput& input);
  int id_of(const Tensor& tensor);
  // Called by apply() in place of the kernel. `specs`: what the shape rule said of the outputs.
  void record(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
              const SpecList& specs, TensorList& outputs);
  // After the function: a captured leaf must not have been given a traced gradient.
  void check_gradients() const;

 private:
  using Key = std::tuple<const void*, int64_t, std::vector<int64_t>, DType>;
  static Key key_of(const Tensor& tensor);
  int add_value(GraphValue value);
  int capture(const Tensor& tensor);
  Tensor make_tensor(int id, const Tensor& like) const;
  Shape example(const DimShape& dims);

  Graph& graph_;
  std::shared_ptr<Allocator> no_memory_;
  std::map<Key, int> captured_;
  std::vector<Tensor> held_;  // captured tensors, so that their addresses stay theirs
  SymbolValues examples_;     // primes: generic sizes
};

}  // namespace obelisk
