// The vector kernel of embedding's gradient.
#pragma once

#include "framework/tensor/context.h"
#include "framework/tensor/dtype.h"

namespace obelisk::ops {

// table[ids[i], :] += rows[i, :] for i < n in this order; table rows and rows are `width` long.
template <typename T>
void add_rows_by_id(const ExecContext& context, const int64_t* ids, int64_t n, const T* rows,
                    int64_t width, Compute<T>* table);

}  // namespace obelisk::ops
