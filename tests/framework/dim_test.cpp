#include "framework/op/dim.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

TEST(Dim, NumbersBehaveAsNumbers) {
  EXPECT_EQ(Dim(3) + Dim(4), Dim(7));
  EXPECT_EQ(Dim(3) * Dim(4), Dim(12));
  EXPECT_EQ(Dim(12).divided_by(4), Dim(3));
  EXPECT_EQ(Dim(5).number(), 5);
  EXPECT_TRUE(could_equal(Dim(2), Dim(2)));
  EXPECT_FALSE(could_equal(Dim(2), Dim(3)));
}

TEST(Dim, EqualExpressionsAreProvenEqual) {
  SymbolTable table;
  const Dim b = table.symbol("B"), t = table.symbol("T");
  EXPECT_EQ(b, table.symbol("B"));
  EXPECT_FALSE(b == t);
  EXPECT_EQ(b * 4 + b, b * 5);
  EXPECT_EQ((b + t) * (b + t), b * b + b * t * 2 + t * t);
  EXPECT_EQ(b * t * 3, t * 3 * b);
  EXPECT_EQ(b * 0, Dim(0));
  EXPECT_EQ(b * 1, b);
  EXPECT_EQ(b + 0, b);
  EXPECT_EQ((b * 6 + 9).divided_by(3), b * 2 + 3);
}

TEST(Dim, TellsWhatCouldBeEqual) {
  SymbolTable table;
  const Dim b = table.symbol("B"), t = table.symbol("T");
  EXPECT_TRUE(could_equal(b, t));
  EXPECT_TRUE(could_equal(b, 7));
  EXPECT_TRUE(could_equal(7, b * t));
  EXPECT_FALSE(could_equal(b, b + 1));
  EXPECT_FALSE(could_equal(b * t + 3, t * b));
}

TEST(Dim, Prints) {
  SymbolTable table;
  const Dim b = table.symbol("B"), t = table.symbol("T");
  EXPECT_EQ(to_string(Dim(12)), "12");
  EXPECT_EQ(to_string(b), "B");
  EXPECT_EQ(to_string(b * 3 + t * b + 2), "B*T + 3*B + 2");
  EXPECT_EQ(to_string(DimShape{b, t, 128}), "[B, T, 128]");
}

TEST(Dim, RefusesWhatItCannotKnow) {
  SymbolTable table;
  const Dim b = table.symbol("B");
  EXPECT_ERROR(b.number(), Bug, "bug: the symbolic dim B was used as a number");
  EXPECT_ERROR(b.divided_by(2), ShapeError, "dim: B is not provably divisible by 2");
  EXPECT_ERROR(Dim(7).divided_by(2), ShapeError, "dim: 7 must be divisible by 2");
  EXPECT_ERROR(Dim(7).divided_by(0), ShapeError, "dim: divisor must be positive; got 0");
}

TEST(Dim, Subtracts) {
  SymbolTable table;
  const Dim b = table.symbol("B"), t = table.symbol("T");
  EXPECT_EQ(Dim(7) - 3, Dim(4));
  EXPECT_EQ(b + t - b, t);
  EXPECT_EQ(to_string(Dim(8) - t), "-T + 8");
  EXPECT_EQ(b * 2 - b * 2, Dim(0));
  EXPECT_ERROR(Dim(3) - 7, ShapeError, "dim: must not be negative; got 3 - 7");
  EXPECT_TRUE(could_be_ordered(3, 4) && could_be_ordered(b, 4) && could_be_ordered(4, b));
  EXPECT_FALSE(could_be_ordered(4, 3) || could_be_ordered(0, -1));
  EXPECT_TRUE(Dim(-1).is_number());
}

TEST(Dim, EvaluatesUnderValuesOfSymbols) {
  SymbolTable table;
  const Dim b = table.symbol("B"), t = table.symbol("T");
  EXPECT_EQ(evaluate(b * t * 3 - t + 5, {{"B", 4}, {"T", 2}}), 27);
  EXPECT_EQ(evaluate(DimShape{b, 3, b + t}, {{"B", 0}, {"T", 2}}), (Shape{0, 3, 2}));
  EXPECT_ERROR(evaluate(b + t, {{"B", 4}}), ShapeError, "dim: symbol T of T + B has no value");
  EXPECT_ERROR(evaluate(b - t, {{"B", 1}, {"T", 3}}), ShapeError,
               "dim: -T + B must not be negative; got -2");
  EXPECT_EQ(symbol_name(b), "B");
  EXPECT_EQ(symbol_name(b * 2), "");
  EXPECT_EQ(symbol_name(b * t), "");
  EXPECT_EQ(symbol_name(Dim(4)), "");
  EXPECT_EQ(symbol_names(b * t + b), (std::vector<std::string>{"B", "B", "T"}));
}

TEST(Dim, ReadsWhatItPrints) {
  SymbolTable table;
  const Dim b = table.symbol("B"), t = table.symbol("T_1");
  for (const Dim dim : {Dim(0), Dim(17), b, b * b * 3, b * t * 2 - t + 4, Dim(9) - b})
    EXPECT_EQ(table.parse(to_string(dim)), dim) << to_string(dim);
  for (const char* text : {"", "B+T", "2B", "B +", "B*", "-", "B  + T", "1 - ", "B.T",
                           "1234567890123456789", "123456789012*123456789012"})
    EXPECT_ERROR(table.parse(text), ValueError,
                 fmt::format("dim: must read like 4*B*T - 1; got '{}'", text));
}

TEST(Dim, ShapesConvert) {
  EXPECT_EQ(to_numbers(to_dims({2, 3, 4})), (Shape{2, 3, 4}));
  EXPECT_EQ(product(DimShape{2, 3, 4}), Dim(24));
  EXPECT_EQ(product(DimShape{}), Dim(1));
}

}  // namespace
}  // namespace obelisk
