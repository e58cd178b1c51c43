#include "framework/op/attrs.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

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

struct DimAttrs {
  DimShape shape;
  Dim end = 0;
  static constexpr auto fields() {
    return std::tuple{field("shape", &DimAttrs::shape), field("end", &DimAttrs::end)};
  }
};

TEST(AttrsTest, ReadsWhatItPrints) {
  SymbolTable table;
  const Attrs a = SomeAttrs{.epsilon = -1.0 / 3, .heads = -5, .causal = false, .shape = {}};
  EXPECT_EQ(Attrs::parse<SomeAttrs>(a.to_string(), table), a);
  const Attrs b = DimAttrs{{table.symbol("B"), 3}, table.symbol("T") * 2 + 1};
  EXPECT_EQ(b.to_string(), "{shape=[B, 3], end=2*T + 1}");
  EXPECT_EQ(Attrs::parse<DimAttrs>(b.to_string(), table), b);
  EXPECT_EQ(Attrs::parse<NoAttrs>("{}", table), Attrs(NoAttrs{}));
}

TEST(AttrsTest, PutsNumbersForSymbols) {
  SymbolTable table;
  const Attrs a = DimAttrs{{table.symbol("B"), 3}, table.symbol("B") * 2};
  const Attrs numbers = a.with_dims([](Dim dim) { return Dim(evaluate(dim, {{"B", 4}})); });
  EXPECT_EQ(numbers.to_string(), "{shape=[4, 3], end=8}");
}

TEST(AttrsTest, RefusesTextThatDoesNotFit) {
  SymbolTable table;
  const auto parse = [&](const char* text) { Attrs::parse<SomeAttrs>(text, table); };
  EXPECT_ERROR(parse("epsilon=1"), ValueError,
               "attributes: must be fields in braces; got 'epsilon=1'");
  EXPECT_ERROR(parse("{heads=4}"), ValueError,
               "attributes: must be fields with 'epsilon' next; got '{heads=4}'");
  EXPECT_ERROR(parse("{epsilon=1x, heads=4, causal=true, dtype=f32, shape=[2]}"), ValueError,
               "attributes: must be a number; got '1x'");
  EXPECT_ERROR(parse("{epsilon=1, heads=4.5, causal=true, dtype=f32, shape=[2]}"), ValueError,
               "attributes: must be an integer; got '4.5'");
  EXPECT_ERROR(parse("{epsilon=1, heads=4, causal=yes, dtype=f32, shape=[2]}"), ValueError,
               "attributes: must be true or false; got 'yes'");
  EXPECT_ERROR(parse("{epsilon=1, heads=4, causal=true, dtype=f33, shape=[2]}"), ValueError,
               "attributes: must be a dtype; got 'f33'");
  EXPECT_ERROR(parse("{epsilon=1, heads=4, causal=true, dtype=f32, shape=2}"), ValueError,
               "attributes: must be a list; got '2'");
  EXPECT_ERROR(parse("{epsilon=1, heads=4, causal=true, dtype=f32, shape=[2, ]}"), ValueError,
               "attributes: must be a list; got '[2, ]'");
  EXPECT_ERROR(parse("{epsilon=1, heads=4, causal=true, dtype=f32, shape=[2], more=1}"), ValueError,
               "attributes: must be the op's own fields; got '{epsilon=1, heads=4, causal=true, "
               "dtype=f32, shape=[2], more=1}'");
}

}  // namespace
}  // namespace obelisk
