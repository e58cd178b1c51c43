// A graph from its text form: Graph::to_string() read back, so that plans and graphs can be kept in
// files.
#pragma once

#include "framework/graph/graph.h"
#include "framework/module/module.h"

namespace obelisk {

// An op by its name, or null: ops::find.
using OpFinder = const OpDef* (*)(std::string_view);

// `find` is ops::find in all but tests. The graph has the same text and hash.
// Parameters and gradients have no tensors yet: see bind_parameters().
//
// Throws ValueError with the line and one sentence: "graph: line 2: no op is called 'gellu'"; shape
// rules are applied again, so a text whose shapes do not fit its ops is refused as well.
Graph parse_graph(std::string_view text, OpFinder find);

// Gives the graph's parameters and gradients the tensors of the parameters with the same paths.
// Throws ShapeError: "graph: parameter wte.weight f32 [65, 128] has no counterpart in the model".
void bind_parameters(Graph& graph, std::span<Parameter* const> parameters);

}  // namespace obelisk
