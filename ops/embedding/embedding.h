// Rows of a table by index, and positions added to a batch.
//
//   embedding(ids [...], table [V, D]) -> [..., D]     y[..., :] = table[ids[...], :]
//   add_rows(x [B, T, D], table [P, D]) -> [B, T, D]   y[b, t, :] = x[b, t, :] + table[t, :]
//
// ids are i64; the table is f32, bf16 or f64. Gradients: dtable[v] += dy[...] wherever ids[...] =
// v, in the order of the ids for every thread count; add_rows sums dy over the batch into the first
// T rows. Where the table's gradient has a buffer already, rows are added straight into it.
//
// Errors: ShapeError "embedding: table must be [V, D]; ..." and the like; ValueError "embedding:
// ids must be in [0, 65); got 70 at position 12"; ShapeError "add_rows: ...".
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

extern const OpDef kEmbedding;  // inputs ids, table; NoAttrs
// Inputs destination [V, D] (written in place; of dy's dtype, f32 for a bf16 dy), ids [...], dy
// [..., D]; no output: destination[ids] += dy.
extern const OpDef kEmbeddingAccumulate;

Tensor embedding(const Tensor& ids, const Tensor& table);
Tensor add_rows(const Tensor& x_BTD, const Tensor& table_PD);

}  // namespace obelisk::ops
