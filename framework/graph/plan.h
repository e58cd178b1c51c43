// Where each value of a graph lives under one binding of its symbols: offsets in one arena, shared
// by values that are never alive together. Touches no data.
#pragma once

#include "framework/graph/graph.h"

namespace obelisk {

// Memory of one op's outputs, by the module that ran it.
struct MemoryUse {
  std::string op;
  std::string path;
  int64_t bytes = 0;
};

struct MemoryPlan {
  int64_t planned_bytes = 0;       // of the arena
  int64_t peak_bytes = 0;          // the most that is alive at once: no arena can be smaller
  std::vector<MemoryUse> at_peak;  // who made what is alive then, largest first
};

// Inputs, parameters, gradients and constants are not counted: they live outside the arena.
// Throws ShapeError when a symbol has no value, or when an op refuses its operands' numbers.
MemoryPlan plan_memory(const Graph& graph, const SymbolValues& symbols);

// A value's place. Views name the value whose memory they show.
struct PlannedValue {
  Shape shape;
  Strides strides;
  int root = 0;        // a view's root is never a view
  int64_t offset = 0;  // elements from the root's first
  int64_t arena = -1;  // bytes from the arena's begin; -1: not in the arena (or a view)
  int64_t bytes = 0;   // of the arena
};

struct ExecutionPlan {
  std::vector<PlannedValue> values;
  std::vector<Attrs> attrs;  // of each node, with numbers for symbols
  MemoryPlan memory;
};

// `inputs`: shape and strides of each input tensor; empty: dense, of the symbols' sizes.
ExecutionPlan plan_execution(const Graph& graph, const SymbolValues& symbols,
                             std::span<const Tensor> inputs);

}  // namespace obelisk
