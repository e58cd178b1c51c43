#pragma once

#include "ops/dropout/dropout.h"
#include "tests/ops/op_case.h"

namespace obelisk {

inline OpCases dropout_cases() {
  auto make = [](const char* name, const Operand& x, double p, double first_sample) {
    return OpCase{.name = name,
                  .inputs = {x, integers({3}, {42, 7, first_sample})},
                  .attrs = ops::DropoutAttrs{p, 0x1234567890ABCDEF}};
  };
  return {&ops::kDropout,
          {
              make("Scalar", normal({}), 0.5, 0),
              make("One", normal({1, 1}), 0.5, 3),
              make("Empty", normal({0, 5}), 0.5, 2),
              make("EmptySamples", normal({3, 0, 1}), 0.5, 2),
              make("Width3", normal({5, 3}), 0.25, 1),
              make("Width17", normal({4, 17}), 0.1, 5),
              make("Width64", normal({3, 64}), 0.9, 0),
              make("KeepsAll", normal({3, 7}), 0.0, 0),
              make("LargeMean", normal({9, 31}, 1.0, 1e4), 0.5, 2),
              make("Chunks", normal({3, 5, 401}), 0.5, 1),
              make("Large", normal({7, 4099}), 0.2, 1000000007),
          }};
}

}  // namespace obelisk
