#include "framework/graph/tracer.h"

#include "framework/base/scope.h"

namespace obelisk {
namespace {

thread_local Tracer* current_tracer = nullptr;

constexpr int64_t kMaxConstantBytes = 4096;

// Blocks of no memory: traced tensors share storage as real ones do, which is how the engine knows
// what it may change in place.
class NoMemory final : public Allocator {
 public:
  void* allocate(size_t) override { return nullptr; }
  void deallocate(void*, size_t) noexcept override {}
  AllocatorStats stats() const override { return {}; }
  void reset_peak() override {}
  void release_cached() override {}
};

bool has(uint32_t mask, size_t i) { return i < 32 && (mask >> i & 1u) != 0; }

}  // namespace

void intrusive_ptr_add_ref(const TracedValue* value) { ++value->references; }
void intrusive_ptr_release(const TracedValue* value) {
  if (--value->references == 0) delete value;
}

Tracer::Tracer(Graph& graph, std::span<Parameter* const> parameters)
    : graph_(graph), no_memory_(std::make_shared<NoMemory>()) {
  OBELISK_CHECK(current_tracer == nullptr, Bug, "bug: trace: inside a traced function");
  for (const Parameter* parameter : parameters) {
    const Tensor& value = parameter->value();
    const auto add = [&](ValueKind kind, const Tensor& tensor) {
      if (!tensor.defined()) return;
      captured_[key_of(tensor)] = add_value(
          {kind, parameter->path(), tensor.dims(), tensor.dtype(), true, tensor.detach()});
    };
    add(ValueKind::Parameter, value);
    add(ValueKind::Gradient, value.grad());
  }
  current_tracer = this;
}

Tracer::~Tracer() { current_tracer = nullptr; }
Tracer* Tracer::current() { return current_tracer; }

Tracer::Key Tracer::key_of(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  std::vector<int64_t> layout(impl.shape.begin(), impl.shape.end());
  layout.insert(layout.end(), impl.strides.begin(), impl.strides.end());
  return {impl.storage.get(), impl.offset, std::move(layout), impl.dtype};
}

int Tracer::add_value(GraphValue value) {
  graph_.values.push_back(std::move(value));
  return static_cast<int>(graph_.values.size()) - 1;
}

Tensor Tracer::add_input(const TraceInput& input) {
  OBELISK_CHECK(!input.name.empty() && input.name.find_first_of(" \n") == std::string::npos,
                ValueError, "trace: an input's name must be one word; got '{}'", input.name);
  DimShape dims;
  for (const std::string& dim : input.dims) dims.push_back(graph_.symbols->parse(dim));
  const int id = add_value({ValueKind::Input, input.name, dims, input.dtype, input.contiguous});
  graph_.inputs.push_back(id);
  const Shape shape = example(dims);
  Strides strides = contiguous_strides(shape);
  // The example of an input with gaps has gaps.
  if (!input.contiguous)
    for (int i = 0; i + 1 < strides.size(); ++i) strides[i] *= 2;
  Tensor example_tensor(new TensorImpl(new Storage(no_memory_, Device{}, 0), 0, shape, strides,
                                       input.dtype, ExecContext::current().device()));
  return make_tensor(id, example_tensor);
}

int Tracer::id_of(const Tensor& tensor) {
  if (!tensor.defined()) return -1;
  if (const TracedValue* traced = tensor.impl().traced.get()) {
    OBELISK_CHECK(traced->trace == no_memory_, Bug,
                  "bug: trace: a tensor of another graph was used");
    return traced->id;
  }
  const auto found = captured_.find(key_of(tensor));
  return found != captured_.end() ? found->second : capture(tensor);
}

int Tracer::capture(const Tensor& tensor) {
  const int64_t bytes = tensor.numel() * static_cast<int64_t>(size_of(tensor.dtype()));
  OBELISK_CHECK(bytes <= kMaxConstantBytes, Bug,
                "bug: trace: a captured tensor that is no parameter must have at most {} bytes; "
                "got {} {}; make it an input",
                kMaxConstantBytes, to_string(tensor.dtype()), to_string(tensor.shape()));
  OBELISK_CHECK(tensor.is_contiguous(), Bug,
                "bug: trace: a captured tensor that is no parameter must be contiguous; got {} {}",
                to_string(tensor.dtype()), to_string(tensor.shape()));
  held_.push_back(tensor);
  const std::string name = "constant" + std::to_string(held_.size() - 1);
  const int id =
      add_value({ValueKind::Constant, name, tensor.dims(), tensor.dtype(), true, tensor.detach()});
  captured_[key_of(tensor)] = id;
  return id;
}

Tensor Tracer::make_tensor(int id, const Tensor& like) const {
  Tensor result = like.detach();
  result.impl().traced = new TracedValue{no_memory_, id, graph_.values[id].dims};
  return result;
}

Shape Tracer::example(const DimShape& dims) {
  // Large, so that a slice of a few elements exists in every one of them; the product of six is a
  // number of elements that int64_t holds.
  static constexpr int64_t kPrimes[] = {1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049};
  for (const Dim& dim : dims)
    for (const std::string& name : symbol_names(dim))
      if (!examples_.contains(name))
        examples_[name] = kPrimes[std::min(examples_.size(), std::size(kPrimes) - 1)];
  return evaluate(dims, examples_);
}

void Tracer::record(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
                    const SpecList& specs, TensorList& outputs) {
  GraphNode node{&op, attrs, {}, {}, PathScope::current() ? *PathScope::current() : ""};
  for (size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(id_of(inputs[i]));
    OBELISK_CHECK(!has(op.writes, i) || node.inputs.back() < 0 ||
                      graph_.values[node.inputs.back()].kind != ValueKind::Constant,
                  Bug, "bug: trace: a constant of the graph is written by {}; make it an input",
                  op.name);
  }
  TensorList examples;
  if (op.view != nullptr) {
    const TensorImpl& x = inputs[0].impl();
    op.view(Tensor(new TensorImpl(x.storage, x.offset, x.shape, x.strides, x.dtype, x.device)),
            attrs.with_dims([&](Dim dim) { return Dim(example({dim})[0]); }), examples);
  } else {
    for (const TensorSpec& spec : specs) {
      const Shape shape = example(spec.shape);
      examples.push_back(Tensor(new TensorImpl(new Storage(no_memory_, Device{}, 0), 0, shape,
                                               contiguous_strides(shape), spec.dtype,
                                               ExecContext::current().device())));
    }
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    const int id = add_value({ValueKind::Temporary, "", specs[i].shape, specs[i].dtype});
    node.outputs.push_back(id);
    outputs.push_back(make_tensor(id, examples[i]));
  }
  graph_.nodes.push_back(std::move(node));
}

void Tracer::check_gradients() const {
  for (const Tensor& tensor : held_) {
    const Tensor gradient = tensor.grad();
    if (!gradient.defined() || gradient.impl().traced == nullptr) continue;
    tensor.impl().grad = nullptr;
    raise<Bug>("bug: trace: a captured tensor {} {} wants a gradient and has no buffer for it",
               to_string(tensor.dtype()), to_string(tensor.shape()));
  }
}

Graph trace(std::span<const TraceInput> inputs, std::span<Parameter* const> parameters,
            const TracedFunction& function) {
  Graph graph;
  Tracer tracer(graph, parameters);
  TensorList tensors;
  for (const TraceInput& input : inputs) tensors.push_back(tracer.add_input(input));
  for (const Tensor& output : function(tensors)) graph.outputs.push_back(tracer.id_of(output));
  tracer.check_gradients();
  return graph;
}

}  // namespace obelisk
