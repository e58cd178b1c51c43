// OpDef: all that is known about an op, in one constant. Eager execution, autograd, the tracer, the
// fusion compiler, the cost model and the partitioners are all readers of it (ops/README.md tells
// how to add one).
#pragma once

#include <span>

#include "framework/op/attrs.h"
#include "framework/tensor/tensor.h"

namespace obelisk {

// What shape inference knows of an operand.
struct TensorSpec {
  DimShape shape;
  DType dtype = DType::F32;
  bool defined = true;  // false: an optional operand that is absent
};
using SpecList = SmallVector<TensorSpec, 7>;

TensorSpec spec_of(const Tensor& tensor);
std::string to_string(const TensorSpec& spec);  // "f32 [B, 128]" or "absent"

// Shape rule. Runs on numbers and on symbols. Helpers that throw ShapeError with all operands
// named.
struct InferArgs {
  const char* op;
  std::span<const char* const> input_names;
  std::span<const TensorSpec> inputs;
  const Attrs& attrs;
  SpecList& outputs;  // to be filled

  const DimShape& shape(int input) const { return inputs[input].shape; }
  void add_output(const DimShape& shape, DType dtype) const {
    outputs.push_back({shape, dtype, true});
  }
  // "op: rule; got x f32 [2, 3], w f32 [4]", thrown when the condition is false.
  void require(bool condition, const char* rule) const {
    if (!condition) [[unlikely]]
      fail(rule);
  }
  // All given inputs that are present are f32, bf16 or f64, and alike.
  void require_same_float(std::initializer_list<int> inputs) const;
  // The same, but `destination` may be f32 where the inputs are bf16: sums stay wide.
  void require_same_float_into(int destination, std::initializer_list<int> inputs) const;
  // Inputs that are sums over `input`, if present: of its dtype, but f32 where it is bf16.
  void require_sums(std::initializer_list<int> sums, int input) const;
  // As require_same_float, without bf16.
  void require_same_f32_f64(std::initializer_list<int> inputs) const;
  [[noreturn]] void fail(const char* rule) const;
};

struct KernelArgs {
  ExecContext& context;
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  const Attrs& attrs;
};

// Gradient rule, written in ops, so that it can run eagerly, be traced, fused and partitioned.
struct BackwardArgs {
  const Attrs& attrs;
  // As OpDef::saved_inputs and saved_outputs say; the others keep shape and dtype only.
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> grad_outputs;  // undefined where no gradient arrived
  std::span<Tensor> grad_inputs;         // to be filled where needs() says so; undefined means zero
  std::span<const Tensor> destinations;  // see below
  std::span<const bool> needed;

  bool needs(int input) const { return needed[input]; }
  // The buffer of leaf i's gradient, if it has one and takes the gradient directly: the rule may
  // add into it with an op that writes its operand (matmul_accumulate) and leave grad_inputs[i]
  // undefined. One addition, no temporary.
  const Tensor& destination(int input) const { return destinations[input]; }
};

struct Cost {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;
};

// What the fusion planner may do with an op.
enum class Fusion : uint8_t { Elementwise, Broadcast, Reduction, View, Opaque };

using Infer = void (*)(const InferArgs&);
using Kernel = void (*)(const KernelArgs&);
using ViewRule = void (*)(const Tensor& input, const Attrs& attrs, TensorList& outputs);
using Decompose = TensorList (*)(std::span<const Tensor> inputs, const Attrs& attrs);
using Backward = void (*)(const BackwardArgs&);
using CostRule = Cost (*)(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                          const Attrs& attrs);

struct OpDef {
  const char* name;
  std::span<const char* const> input_names;
  Infer infer;
  // Reads the text of the op's attributes again (Attrs::parse of their struct).
  Attrs (*parse_attrs)(std::string_view text, SymbolTable& symbols) = Attrs::parse<NoAttrs>;

  // Kernels. `cpu` is the vector kernel, `reference` the plain loops it is tested against (f32 and
  // f64; a bf16 kernel is held against them too); an op whose plain loops are all there is names
  // them twice. A null kernel means: run `decompose`, or refuse with a sentence.
  Kernel cpu = nullptr;
  Kernel cuda = nullptr;
  Kernel reference = nullptr;
  // Instead of kernels: outputs that share the first input's storage.
  ViewRule view = nullptr;
  // The same maths in simpler ops: the specification of a fused op.
  Decompose decompose = nullptr;

  Backward backward = nullptr;  // null: not differentiable, the output requires no gradient
  uint32_t saved_inputs = 0;    // bit i: backward reads input i's values
  uint32_t saved_outputs = 0;   // bit i: backward reads output i's values

  uint32_t writes = 0;          // bit i: input i is written in place
  uint32_t strided_inputs = 0;  // bit i: input i may be non-contiguous (rows of the last dim dense)

  Fusion fusion = Fusion::Opaque;
  CostRule cost = nullptr;
};

constexpr uint32_t bit(int index) { return uint32_t{1} << index; }
template <typename... Ints>
constexpr uint32_t bits(Ints... indices) {
  return (bit(indices) | ... | 0u);
}

// Bytes of the specs' elements; dims must be numbers.
double bytes_of(std::span<const TensorSpec> specs);
// The usual cost of a memory-bound op: every operand read once, every output written once.
template <int kFlopsPerElement>
Cost streaming_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                    const Attrs&) {
  const double elements =
      inputs.empty() ? 0.0 : static_cast<double>(product(inputs[0].shape).number());
  return {kFlopsPerElement * elements, bytes_of(inputs), bytes_of(outputs)};
}

// Runs the op on the current context, and records it for backward where gradients are wanted.
//
// Throws ShapeError when the operands do not fit; adds the module path of the running scope to any
// Error.
TensorList apply(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs);
inline TensorList apply(const OpDef& op, std::initializer_list<Tensor> inputs, const Attrs& attrs) {
  return apply(op, std::span<const Tensor>(inputs.begin(), inputs.size()), attrs);
}
// The same with one of the op's kernels instead of the device's own (tests compare them); null runs
// `decompose`.
TensorList apply_with(Kernel kernel, const OpDef& op, std::span<const Tensor> inputs,
                      const Attrs& attrs);

}  // namespace obelisk
