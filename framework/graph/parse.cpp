#include "framework/graph/parse.h"

#include <algorithm>
#include <charconv>

#include "framework/graph/constant_text.h"

namespace obelisk {
namespace {

class Parser {
 public:
  Parser(std::string_view text, OpFinder find) : text_(text), find_(find) {}

  Graph run() {
    while (!text_.empty()) {
      ++line_;
      const size_t end = text_.find('\n');
      if (end == std::string_view::npos) fail("must end with a line end");
      rest_ = text_.substr(0, end);
      text_.remove_prefix(end + 1);
      if (returned_) fail("nothing may follow the return");
      read_line();
    }
    if (!returned_) fail("a return must come at last");
    for (size_t id = 0; id < defined_.size(); ++id)
      if (!defined_[id]) fail("value %" + std::to_string(id) + " is missing");
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& rule) const {
    raise<ValueError>("graph: line {}: {}", line_, rule);
  }

  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  void expect(std::string_view prefix) {
    if (!take(prefix)) fail(fmt::format("'{}' must stand before '{}'", prefix, rest_));
  }
  // The text before `end`, which is taken as well; all of the rest where it does not occur.
  std::string_view until(std::string_view end) {
    const size_t at = rest_.find(end);
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + end.size());
    return taken;
  }

  int read_id() {
    expect("%");
    int id = -1;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), id);
    // A text of n bytes has fewer than n values: no number makes us take memory without end.
    constexpr int kMostValues = 1 << 24;
    if (error != std::errc() || id < 0 || id >= kMostValues) fail("a value must have a number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return id;
  }

  // A value is defined once, before it is used.
  int define(GraphValue value, int id) {
    const auto index = static_cast<size_t>(id);
    if (index >= defined_.size()) {
      defined_.resize(index + 1, false);
      graph_.values.resize(index + 1);
    }
    if (defined_[index]) fail(fmt::format("value %{} is defined twice", id));
    defined_[index] = true;
    graph_.values[index] = std::move(value);
    return id;
  }

  // "%3, none, %4", the whole text.
  std::vector<int> read_ids(std::string_view text) {
    std::vector<int> ids;
    const std::string_view outer = rest_;
    rest_ = text;
    while (!rest_.empty()) {
      if (take("none")) {
        ids.push_back(-1);
      } else {
        ids.push_back(read_id());
        const auto index = static_cast<size_t>(ids.back());
        if (index >= defined_.size() || !defined_[index])
          fail(fmt::format("value %{} is used before it is made", ids.back()));
      }
      if (!rest_.empty()) expect(", ");
    }
    rest_ = outer;
    return ids;
  }

  // "f32 [B, 3]"
  void read_type(GraphValue& value) {
    const std::string_view dtype = until(" ");
    const std::string_view dims = rest_.substr(0, rest_.find(']') + 1);
    try {
      attrs_detail::read(dtype, *graph_.symbols, value.dtype);
      attrs_detail::read(dims, *graph_.symbols, value.dims);
    } catch (const Error& error) {
      fail(error.what());
    }
    rest_.remove_prefix(dims.size());
  }

  void read_line() {
    if (take("return ")) {
      graph_.outputs = read_ids(rest_);
      returned_ = true;
      return;
    }
    if (take("return")) {
      if (!rest_.empty()) fail("a return must list values");
      returned_ = true;
      return;
    }
    for (const ValueKind kind :
         {ValueKind::Input, ValueKind::Parameter, ValueKind::Gradient, ValueKind::Constant})
      if (take(std::string(to_string(kind)) + " ")) return read_value(kind);
    read_node();
  }

  void read_value(ValueKind kind) {
    GraphValue value;
    value.kind = kind;
    const int id = read_id();
    expect(" ");
    value.name = until(" ");
    read_type(value);
    if (kind == ValueKind::Input && take(" strided")) value.contiguous = false;
    if (kind == ValueKind::Constant) {
      expect(" = ");
      try {
        value.tensor = read_constant(rest_, value.dtype, value.dims);
      } catch (const Error& error) {
        fail(error.what());
      }
      rest_ = {};
    }
    if (!rest_.empty()) fail(fmt::format("'{}' is too much", rest_));
    define(std::move(value), id);
    if (kind == ValueKind::Input) graph_.inputs.push_back(id);
  }

  void read_node() {
    GraphNode node;
    std::vector<std::pair<int, GraphValue>> outputs;
    while (rest_.starts_with("%")) {
      outputs.emplace_back(read_id(), GraphValue{});
      expect(" ");
      read_type(outputs.back().second);
      if (!take(", ")) {
        expect(" = ");
        break;
      }
    }
    const std::string_view name = until("(");
    node.op = find_(name);
    if (node.op == nullptr) fail(fmt::format("no op is called '{}'", name));
    node.inputs = read_ids(until(") "));
    const size_t end = rest_.find('}');
    const std::string_view attrs = rest_.substr(0, end == std::string_view::npos ? end : end + 1);
    try {
      node.attrs = node.op->parse_attrs(attrs, *graph_.symbols);
    } catch (const Error& error) {
      fail(error.what());
    }
    rest_.remove_prefix(attrs.size());
    if (take(" in ")) {
      node.path = rest_;
      rest_ = {};
    }
    if (!rest_.empty()) fail(fmt::format("'{}' is too much", rest_));
    check_node(node, outputs);
    for (auto& [id, value] : outputs) node.outputs.push_back(define(std::move(value), id));
    graph_.nodes.push_back(std::move(node));
  }

  // The op's own shape rule decides whether operands and results fit.
  void check_node(const GraphNode& node, const std::vector<std::pair<int, GraphValue>>& outputs) {
    if (node.inputs.size() < node.op->input_names.size() ||
        (node.op->view != nullptr && node.inputs[0] < 0))
      fail(fmt::format("{} takes {} operands", node.op->name, node.op->input_names.size()));
    SpecList inputs, specs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int id = node.inputs[i];
      if (id < 0) {
        inputs.push_back({{}, DType::F32, false});
        continue;
      }
      const GraphValue& value = graph_.values[id];
      inputs.push_back({value.dims, value.dtype, true});
      if (i < 32 && (node.op->writes >> i & 1u) != 0 && value.kind == ValueKind::Constant)
        fail(fmt::format("{} writes the constant %{}", node.op->name, id));
    }
    try {
      node.op->infer({node.op->name, node.op->input_names, inputs, node.attrs, specs});
    } catch (const Error& error) {
      fail(error.what());
    }
    bool same = specs.size() == outputs.size();
    for (size_t i = 0; same && i < specs.size(); ++i)
      same = specs[i].shape == outputs[i].second.dims && specs[i].dtype == outputs[i].second.dtype;
    if (same) return;
    std::string expected;
    for (const TensorSpec& spec : specs)
      expected += (expected.empty() ? "" : ", ") + obelisk::to_string(spec);
    fail(fmt::format("{} makes {}", node.op->name, expected.empty() ? "nothing" : expected));
  }

  std::string_view text_, rest_;
  OpFinder find_;
  Graph graph_;
  std::vector<bool> defined_;
  size_t line_ = 0;
  bool returned_ = false;
};

}  // namespace

Graph parse_graph(std::string_view text, OpFinder find) { return Parser(text, find).run(); }

void bind_parameters(Graph& graph, std::span<Parameter* const> parameters) {
  for (GraphValue& value : graph.values) {
    if (value.kind != ValueKind::Parameter && value.kind != ValueKind::Gradient) continue;
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Parameter* p) { return p->path() == value.name; });
    Tensor tensor;
    if (found != parameters.end())
      tensor = value.kind == ValueKind::Parameter ? (*found)->value() : (*found)->value().grad();
    OBELISK_CHECK(tensor.defined() && tensor.dtype() == value.dtype && tensor.dims() == value.dims,
                  ShapeError, "graph: {} {} {} {} has no counterpart in the model",
                  to_string(value.kind), value.name, to_string(value.dtype), to_string(value.dims));
    value.tensor = tensor.detach();
  }
}

}  // namespace obelisk
