#include "ops/embedding/embedding.h"

#include <algorithm>

#include "framework/op/full.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/strided.h"
#include "ops/embedding/embedding_kernels.h"
#include "ops/layout/layout.h"

namespace obelisk::ops {
namespace {

constexpr const char* kNames[] = {"ids", "table"};
constexpr const char* kAccumulateNames[] = {"destination", "ids", "dy"};

DimShape with_width(const DimShape& ids, Dim width) {
  DimShape shape = ids;
  shape.push_back(width);
  return shape;
}

void infer_embedding(const InferArgs& args) {
  args.require_same_float({1});
  args.require(args.inputs[0].dtype == DType::I64, "ids must be i64");
  args.require(args.shape(1).size() == 2, "table must be [V, D]");
  args.add_output(with_width(args.shape(0), args.shape(1)[1]), args.inputs[1].dtype);
}

void infer_accumulate(const InferArgs& args) {
  args.require_same_float({2});
  args.require_sums({0}, 2);
  args.require(args.inputs[1].dtype == DType::I64, "ids must be i64");
  args.require(args.shape(0).size() == 2, "destination must be [V, D]");
  args.require(args.shape(2) == with_width(args.shape(1), args.shape(0)[1]),
               "dy must be [..., D] with ids [...] and destination [V, D]");
}

// The lowest bad position, whatever thread would meet one first.
void check_ids(const char* op, const Tensor& ids, int64_t count) {
  const int64_t* id = ids.data<int64_t>();
  const auto limit = static_cast<uint64_t>(count);
  for (int64_t i = 0; i < ids.numel(); ++i)
    OBELISK_CHECK(static_cast<uint64_t>(id[i]) < limit, ValueError,
                  "{}: ids must be in [0, {}); got {} at position {}", op, count, id[i], i);
}

void embedding_kernel(const KernelArgs& args) {
  const Tensor &ids = args.inputs[0], &table = args.inputs[1];
  check_ids("embedding", ids, table.shape()[0]);
  const int64_t width = table.shape()[1];
  visit_float(table.dtype(), "embedding", [&]<typename T>() {
    const int64_t* id = ids.data<int64_t>();
    const T* rows = table.data<T>();
    T* y = args.outputs[0].data<T>();
    args.context.parallel_for(ids.numel(), elementwise_grain(ids.numel(), width),
                              [&](int64_t begin, int64_t end) {
                                for (int64_t i = begin; i < end; ++i)
                                  std::copy_n(rows + id[i] * width, width, y + i * width);
                              });
  });
}

void embedding_reference(const KernelArgs& args) {
  const Tensor &ids = args.inputs[0], &table = args.inputs[1];
  check_ids("embedding", ids, table.shape()[0]);
  const int64_t width = table.shape()[1];
  visit_f32_f64(table.dtype(), "embedding", [&]<typename T>() {
    for (int64_t i = 0; i < ids.numel(); ++i)
      for (int64_t j = 0; j < width; ++j)
        args.outputs[0].data<T>()[i * width + j] =
            table.data<T>()[ids.data<int64_t>()[i] * width + j];
  });
}

void accumulate_kernel(const KernelArgs& args) {
  const Tensor &table = args.inputs[0], &ids = args.inputs[1], &dy = args.inputs[2];
  check_ids("embedding_accumulate", ids, table.shape()[0]);
  visit_float(dy.dtype(), "embedding_accumulate", [&]<typename T>() {
    add_rows_by_id(args.context, ids.data<int64_t>(), ids.numel(),
                   static_cast<const T*>(dy.data<T>()), table.shape()[1], table.data<Compute<T>>());
  });
}

void accumulate_reference(const KernelArgs& args) {
  const Tensor &table = args.inputs[0], &ids = args.inputs[1], &dy = args.inputs[2];
  check_ids("embedding_accumulate", ids, table.shape()[0]);
  const int64_t width = table.shape()[1];
  visit_f32_f64(table.dtype(), "embedding_accumulate", [&]<typename T>() {
    for (int64_t i = 0; i < ids.numel(); ++i)
      for (int64_t j = 0; j < width; ++j)
        table.data<T>()[ids.data<int64_t>()[i] * width + j] += dy.data<T>()[i * width + j];
  });
}

void embedding_backward(const BackwardArgs& args) {
  if (!args.needs(1)) return;
  const Tensor& table = args.inputs[1];
  Tensor destination = args.destination(1);
  if (!destination.defined())
    destination = args.grad_inputs[1] = zeros_like(table, sum_dtype(table.dtype()));
  apply(kEmbeddingAccumulate, {destination, args.inputs[0], args.grad_outputs[0]}, NoAttrs{});
}

Cost embedding_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                    const Attrs&) {
  return {0.0, bytes_of(inputs.first(1)) + bytes_of(outputs), bytes_of(outputs)};
}
Cost accumulate_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                     const Attrs&) {
  const double rows = bytes_of(inputs.subspan(2, 1));
  return {static_cast<double>(product(inputs[2].shape).number()),
          bytes_of(inputs.subspan(1, 1)) + 2 * rows, rows};
}

}  // namespace

constinit const OpDef kEmbedding{.name = "embedding",
                                 .input_names = kNames,
                                 .infer = infer_embedding,
                                 .cpu = embedding_kernel,
                                 .reference = embedding_reference,
                                 .backward = embedding_backward,
                                 .saved_inputs = bit(0),
                                 .cost = embedding_cost};
constinit const OpDef kEmbeddingAccumulate{.name = "embedding_accumulate",
                                           .input_names = kAccumulateNames,
                                           .infer = infer_accumulate,
                                           .cpu = accumulate_kernel,
                                           .reference = accumulate_reference,
                                           .writes = bit(0),
                                           .cost = accumulate_cost};

Tensor embedding(const Tensor& ids, const Tensor& table) {
  return apply(kEmbedding, {ids, table}, NoAttrs{})[0];
}

// A view and a broadcasting add: their gradients are a fixed-order sum over the batch, added in
// place to the rows that were used.
Tensor add_rows(const Tensor& x_BTD, const Tensor& table_PD) {
  OBELISK_CHECK(x_BTD.num_dims() == 3 && table_PD.num_dims() == 2 &&
                    could_be_ordered(x_BTD.dims()[1], table_PD.dims()[0]) &&
                    x_BTD.dims()[2] == table_PD.dims()[1],
                ShapeError,
                "add_rows: x must be [B, T, D] and table [P, D] with T at most P; got {}, {}",
                describe("x", x_BTD), describe("table", table_PD));
  return add(x_BTD, slice(table_PD, 0, 0, x_BTD.dims()[1]));
}

}  // namespace obelisk::ops
