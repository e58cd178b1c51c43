#include "framework/graph/graph.h"

#include <fmt/format.h>

#include "framework/graph/constant_text.h"

namespace obelisk {
namespace {

std::string list(const std::vector<int>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i)
    text += (i > 0 ? ", " : "") + (ids[i] < 0 ? std::string("none") : fmt::format("%{}", ids[i]));
  return text;
}

std::string describe_value(const Graph& graph, int id) {
  const GraphValue& value = graph.values[id];
  return fmt::format("%{} {} {}", id, to_string(value.dtype), to_string(value.dims));
}

}  // namespace

std::string_view to_string(ValueKind kind) {
  static constexpr std::string_view kNames[] = {"input", "parameter", "gradient", "constant",
                                                "temporary"};
  return kNames[static_cast<int>(kind)];
}

std::string Graph::to_string() const {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    const GraphValue& value = values[i];
    if (value.kind == ValueKind::Temporary) continue;
    text += fmt::format("{} %{} {} {} {}{}", obelisk::to_string(value.kind), i, value.name,
                        obelisk::to_string(value.dtype), obelisk::to_string(value.dims),
                        value.contiguous ? "" : " strided");
    if (value.kind == ValueKind::Constant) text += " = " + print_constant(value.tensor);
    text += "\n";
  }
  for (const GraphNode& node : nodes) {
    std::string outputs_text;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      outputs_text += (i > 0 ? ", " : "") + describe_value(*this, node.outputs[i]);
    text += fmt::format("{}{}{}({}) {}{}\n", outputs_text, node.outputs.empty() ? "" : " = ",
                        node.op->name, list(node.inputs), node.attrs.to_string(),
                        node.path.empty() ? "" : " in " + node.path);
  }
  return text + (outputs.empty() ? "return" : "return " + list(outputs)) + "\n";
}

uint64_t Graph::hash() const { return attrs_detail::hash_text(to_string()); }

}  // namespace obelisk
