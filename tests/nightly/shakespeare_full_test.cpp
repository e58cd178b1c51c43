// nanoGPT's character run in full: 1.898, 1.891 and 1.908 in PyTorch for three seeds.
#include <gtest/gtest.h>

#include "tests/support/shakespeare.h"

namespace obelisk {
namespace {

TEST(ShakespeareFull, ReachesTheReferenceLossForAnySeed) {
  for (int64_t seed : {1337, 1, 2}) {
    const double loss = shakespeare_validation_loss(seed, 2000);
    RecordProperty("seed_" + std::to_string(seed), std::to_string(loss));
    EXPECT_GT(loss, 1.87) << seed;
    EXPECT_LT(loss, 1.93) << seed;
  }
}

}  // namespace
}  // namespace obelisk
