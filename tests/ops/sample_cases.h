#pragma once

#include "ops/sample/sample.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline OpCases sample_cases() {
  auto make = [](const char* name, const Operand& logits, double temperature, int64_t top_k) {
    return OpCase{.name = name,
                  .inputs = {logits, integers({3}, {42, 7, 11})},
                  .attrs = ops::SampleAttrs{temperature, top_k, -77}};
  };
  return {&ops::kSample,
          {
              make("One", normal({1, 1}), 1.0, 0),
              make("Empty", normal({0, 5}), 1.0, 0),
              make("EmptyBoth", normal({0, 0}), 1.0, 0),
              make("Width3", normal({9, 3}), 1.0, 0),
              make("Width17", normal({6, 17}), 0.7, 0),
              make("Width64", normal({6, 64}, 3.0), 1.3, 0),
              make("LargeMean", normal({6, 65}, 1.0, 1e4), 1.0, 0),
              make("Largest", normal({6, 65}), 0.0, 0),
              make("LargestOfEquals", values({2, 4}, {1, 3, 3, 0, 5, 5, 5, 5}), 0.0, 0),
              make("Top1", normal({5, 33}), 2.0, 1),
              make("Top5", normal({5, 33}), 1.0, 5),
              make("TopAll", normal({5, 33}), 1.0, 50),
              make("TopOfEquals", values({3, 4}, {1, 3, 3, 3, 2, 2, 2, 2, 0, 9, 9, 9}), 1.0, 2),
              make("Large", normal({70, 401}), 1.0, 40),
          },
          Bf16::None};
}

}  // namespace obelisk
