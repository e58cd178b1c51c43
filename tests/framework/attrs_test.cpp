#include "framework/op/attrs.h"

#include <gtest/gtest.h>

namespace obelisk {
namespace {

struct SomeAttrs {
  double epsilon = 1e-5;
  int64_t heads = 4;
  bool causal = true;
  DType dtype = DType::F32;
  Shape shape{2, 3};
  static constexpr auto fields() {
    return std::tuple{field("epsilon", &SomeAttrs::epsilon), field("heads", &SomeAttrs::heads),
                      field("causal", &SomeAttrs::causal), field("dtype", &SomeAttrs::dtype),
                      field("shape", &SomeAttrs::shape)};
  }
};

TEST(AttrsTest, PrintsHashesAndComparesItsFields) {
  const Attrs a = SomeAttrs{};
  EXPECT_EQ(a.to_string(), "{epsilon=1e-05, heads=4, causal=true, dtype=f32, shape=[2, 3]}");
  EXPECT_EQ(a, Attrs(SomeAttrs{}));
  EXPECT_EQ(a.hash(), Attrs(SomeAttrs{}).hash());
  const Attrs b = SomeAttrs{.heads = 5};
  EXPECT_FALSE(a == b);
  EXPECT_NE(a.hash(), b.hash());
  EXPECT_EQ(a.as<SomeAttrs>().heads, 4);
  EXPECT_THROW(a.as<NoAttrs>(), Bug);
  EXPECT_EQ(Attrs(NoAttrs{}).to_string(), "{}");
}

}  // namespace
}  // namespace obelisk
