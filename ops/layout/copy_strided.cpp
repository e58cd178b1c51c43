#include "ops/layout/copy_strided.h"

#include <cstring>

#include "ops/elementwise/strided.h"
#include "ops/layout/transpose.h"

namespace obelisk::ops {
namespace {

// Shorter rows are copied element by element: a call of memcpy costs as much as eight of them.
constexpr int64_t kShortRow = 8;

template <typename T>
void copy_row(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t n) {
  if (from_step == 1 && to_step == 1 && n >= kShortRow) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (from_step == 0 && to_step == 1) {
    std::fill_n(to, n, *from);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

// The two dims a transposition exchanges, and the others round them.
struct TransposePlan {
  int64_t across = 1;         // size of the dim dense in the destination
  int64_t across_stride = 0;  // its stride in the source
  int64_t along = 1;          // size of the dim dense in the source
  int64_t along_stride = 0;   // its stride in the destination
  int64_t source_step = 1;    // and in the source: 1 where it is dense
  Shape outer;
  Strides outer_source, outer_destination;
};

TransposePlan plan_transpose(const Shape& shape, const Strides& source) {
  const Strides destination = contiguous_strides(shape);
  TransposePlan plan;
  int across = -1, along = -1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    across = i;  // the last dim of more than one element is dense in the destination
    if (along < 0 || source[i] < source[along]) along = i;
  }
  for (int i = 0; i < shape.size(); ++i) {
    if (i == across || i == along || shape[i] == 1) continue;
    plan.outer.push_back(shape[i]);
    plan.outer_source.push_back(source[i]);
    plan.outer_destination.push_back(destination[i]);
  }
  if (across < 0) return plan;  // one element
  plan.across = shape[across];
  plan.across_stride = source[across];
  plan.along = shape[along];
  plan.along_stride = destination[along];
  plan.source_step = source[along];
  return plan;
}

}  // namespace

void copy_strided(const ExecContext& context, size_t element_size, const Shape& shape,
                  const void* source, const Strides& source_strides, void* destination,
                  const Strides& destination_strides) {
  const StridedLoop<2> loop(shape, {source_strides, destination_strides});
  visit_element_size(element_size, [&]<typename T>() {
    const T* from = static_cast<const T*>(source);
    T* to = static_cast<T*>(destination);
    const auto steps = loop.steps();
    loop.parallel(context, [&](const std::array<int64_t, 2>& at, int64_t n) {
      copy_row(from + at[0], steps[0], to + at[1], steps[1], n);
    });
  });
}

void copy_transposed(const ExecContext& context, size_t element_size, const Shape& shape,
                     const void* source, const Strides& source_strides, void* destination) {
  const Strides dense = contiguous_strides(shape);
  const int64_t n = num_elements(shape);
  if (n == 0) return;
  const StridedLoop<2> loop(shape, {source_strides, dense});
  const TransposePlan plan = plan_transpose(shape, source_strides);
  // Rows stay together, or no dim is dense in the source.
  if (loop.steps()[0] == 1 || plan.source_step != 1)
    return copy_strided(context, element_size, shape, source, source_strides, destination, dense);
  // One row of tiles: a tile's width of the dim dense in the source, all of the other.
  constexpr int64_t kTile = kTransposeTile;
  const int64_t bands = (plan.along + kTile - 1) / kTile;
  const int64_t outer_count = num_elements(plan.outer);
  [[maybe_unused]] const TransposeTile whole_tile = transpose_tile_of_words();
  visit_element_size(element_size, [&]<typename T>() {
    const T* from = static_cast<const T*>(source);
    T* to = static_cast<T*>(destination);
    auto copy_band = [&](int64_t source_at, int64_t destination_at, int64_t band) {
      const int64_t j = band * kTile, columns = std::min(kTile, plan.along - j);
      for (int64_t i = 0; i < plan.across; i += kTile) {
        const int64_t rows = std::min(kTile, plan.across - i);
        const T* tile_from = from + source_at + i * plan.across_stride + j;
        T* tile_to = to + destination_at + j * plan.along_stride + i;
        if constexpr (sizeof(T) == sizeof(uint32_t)) {
          if (rows == kTile && columns == kTile) {
            whole_tile(tile_from, plan.across_stride, tile_to, plan.along_stride);
            continue;
          }
        }
        transpose_rest(tile_from, plan.across_stride, tile_to, plan.along_stride, rows, columns);
      }
    };
    context.parallel_for(
        outer_count * bands,
        elementwise_grain(outer_count * bands, plan.across * std::min(kTile, plan.along)),
        [&](int64_t begin, int64_t end) {
          for (int64_t index = begin; index < end; ++index) {
            const int64_t which = index / bands;
            copy_band(strided_offset(which, plan.outer, plan.outer_source),
                      strided_offset(which, plan.outer, plan.outer_destination), index % bands);
          }
        });
  });
}

void zero_strided(const ExecContext& context, size_t element_size, const Shape& shape,
                  void* destination, const Strides& strides) {
  const StridedLoop<1> loop(shape, {strides});
  visit_element_size(element_size, [&]<typename T>() {
    T* to = static_cast<T*>(destination);
    const int64_t step = loop.steps()[0];
    loop.parallel(context, [&](const std::array<int64_t, 1>& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[at[0] + i * step] = 0;
    });
  });
}

}  // namespace obelisk::ops
