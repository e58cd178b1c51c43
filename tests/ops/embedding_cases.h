#pragma once

#include "ops/embedding/embedding.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline std::vector<OpCases> embedding_cases() {
  auto forward = [](const char* name, const Shape& shape, int64_t vocabulary, int64_t width) {
    return OpCase{.name = name,
                  .inputs = {ids(shape, vocabulary), normal({vocabulary, width})},
                  .reduction_length = num_elements(shape)};
  };
  auto accumulate = [](const char* name, const Shape& shape, int64_t vocabulary, int64_t width) {
    Shape rows = shape;
    rows.push_back(width);
    return OpCase{
        .name = name,
        .inputs = {as_sum(normal({vocabulary, width})), ids(shape, vocabulary), normal(rows)},
        .reduction_length = num_elements(shape)};
  };
  auto every = [](auto make) {
    return std::vector<OpCase>{
        make("Scalar", Shape{}, 3, 5),          make("One", Shape{1}, 1, 1),
        make("NoIds", Shape{0}, 4, 3),          make("NoWidth", Shape{1}, 1, 0),
        make("Width3", Shape{2, 5}, 7, 3),      make("Width17", Shape{4, 3}, 5, 17),
        make("Width64", Shape{2, 2, 9}, 5, 64), make("Width65", Shape{30}, 3, 65),
        make("Large", Shape{6, 64}, 65, 72),
    };
  };
  return {{&ops::kEmbedding, every(forward)}, {&ops::kEmbeddingAccumulate, every(accumulate)}};
}

}  // namespace obelisk
