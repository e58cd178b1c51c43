// Graph: what a traced function does, as data: values, and nodes in the order of execution that
// point at op definitions. Dims may be symbolic, so one graph serves every batch and length.
//
// A node writes only its outputs, and the inputs that its OpDef names in `writes`: these are the
// write edges, such as a gradient added to a parameter's buffer. Order of execution is the order of
// the nodes, so whoever reads a written value sees what the nodes before have written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/op/op_def.h"

namespace obelisk {

enum class ValueKind : uint8_t {
  Input,      // bound at each run
  Parameter,  // the values of a parameter, named by its path
  Gradient,   // the gradient buffer of a parameter, named by its path
  Constant,   // a small tensor that the traced function used without being given it
  Temporary,  // made by a node
};
std::string_view to_string(ValueKind kind);

struct GraphValue {
  ValueKind kind = ValueKind::Temporary;
  std::string name;  // one word, unique among those of its kind; empty for temporaries
  DimShape dims;
  DType dtype = DType::F32;
  bool contiguous = true;  // inputs: false allows any strides
  Tensor tensor = {};      // parameters, gradients and constants
};

struct GraphNode {
  const OpDef* op = nullptr;
  Attrs attrs = NoAttrs{};
  std::vector<int> inputs;   // values; -1: an absent optional operand
  std::vector<int> outputs;  // values
  std::string path;          // of the module that ran it
};

struct Graph {
  std::unique_ptr<SymbolTable> symbols = std::make_unique<SymbolTable>();
  std::vector<GraphValue> values;
  std::vector<GraphNode> nodes;
  std::vector<int> inputs;   // values of kind Input, in order
  std::vector<int> outputs;  // values; -1: undefined

  // One line a value that no node made, one a node, one for the outputs:
  //   input %0 ids i64 [B, T]
  //   parameter %1 wte.weight f32 [65, 128]
  //   constant %2 constant0 f32 [] = 0.125
  //   %3 f32 [B, T, 128] = embedding(%0, %1) {} in wte
  //   return %3
  std::string to_string() const;
  // Of to_string(): the same in every process.
  uint64_t hash() const;
};

}  // namespace obelisk
