// Tiles of a transposition.
#pragma once

#include <cstdint>

namespace obelisk::ops {

// A tile's side: a row of it is one cache line of f32.
inline constexpr int64_t kTransposeTile = 16;

// to[j * to_stride + i] = from[i * from_stride + j] for a whole tile.
using TransposeTile = void (*)(const uint32_t* from, int64_t from_stride, uint32_t* to,
                               int64_t to_stride);
// The tile for elements of 4 bytes.
TransposeTile transpose_tile_of_words();

// The same for any element and for the tiles at the edges: i < rows, j < columns.
template <typename T>
void transpose_rest(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                    int64_t columns) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
}

}  // namespace obelisk::ops
