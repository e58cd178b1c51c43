#include <algorithm>

#include "ops/elementwise/strided.h"
#include "ops/embedding/embedding_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/embedding/embedding_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway's headers stand after foreach_target.h.
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

// Columns [first, last) of every row.
template <typename T>
HWY_INLINE void add_columns(const int64_t* ids, int64_t n, const T* rows, int64_t width,
                            Compute<T>* table, int64_t first, int64_t last) {
  using V = hn::Vec<hn::ScalableTag<Compute<T>>>;
  for (int64_t i = 0; i < n; ++i) {
    Compute<T>* row = table + ids[i] * width + first;
    map_binary(row, rows + i * width + first, row, last - first,
               [](V a, V b) HWY_ATTR { return hn::Add(a, b); });
  }
}

void add_columns_f32(const int64_t* ids, int64_t n, const float* rows, int64_t width, float* table,
                     int64_t first, int64_t last) {
  add_columns(ids, n, rows, width, table, first, last);
}
void add_columns_bf16(const int64_t* ids, int64_t n, const BFloat16* rows, int64_t width,
                      float* table, int64_t first, int64_t last) {
  add_columns(ids, n, rows, width, table, first, last);
}
void add_columns_f64(const int64_t* ids, int64_t n, const double* rows, int64_t width,
                     double* table, int64_t first, int64_t last) {
  add_columns(ids, n, rows, width, table, first, last);
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
namespace {

HWY_EXPORT(add_columns_f32);
HWY_EXPORT(add_columns_bf16);
HWY_EXPORT(add_columns_f64);

// Threads share columns, so that each element's additions are one thread's, in the order of the
// ids. A thread's part of a row is whole cache lines.
constexpr int64_t kColumnGrain = 32;

}  // namespace

template <typename T>
void add_rows_by_id(const ExecContext& context, const int64_t* ids, int64_t n, const T* rows,
                    int64_t width, Compute<T>* table) {
  const int64_t grain = n * width < kSerialElements ? std::max<int64_t>(width, 1) : kColumnGrain;
  context.parallel_for(width, grain, [&](int64_t first, int64_t last) {
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(add_columns_f32)(ids, n, rows, width, table, first, last);
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      HWY_DYNAMIC_DISPATCH(add_columns_bf16)(ids, n, rows, width, table, first, last);
    } else {
      HWY_DYNAMIC_DISPATCH(add_columns_f64)(ids, n, rows, width, table, first, last);
    }
  });
}
template void add_rows_by_id<float>(const ExecContext&, const int64_t*, int64_t, const float*,
                                    int64_t, float*);
template void add_rows_by_id<BFloat16>(const ExecContext&, const int64_t*, int64_t, const BFloat16*,
                                       int64_t, float*);
template void add_rows_by_id<double>(const ExecContext&, const int64_t*, int64_t, const double*,
                                     int64_t, double*);

}  // namespace obelisk::ops
#endif  // HWY_ONCE
