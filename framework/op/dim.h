// Dim: a number or a symbolic expression, so that an op's shape rule is written once for eager and
// traced execution.
//
// Numbers take the fast path: one word, compared and multiplied inline. Expressions are polynomials
// over symbols with integer coefficients, owned and interned by a SymbolTable: two expressions are
// equal exactly when their canonical forms are, so B * 3 + B == 4 * B is proven and B == T is not.
//
//   SymbolTable table;
//   Dim batch = table.symbol("B");
//   (batch * 4 + batch) == batch * 5;   // true
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/tensor/shape.h"

namespace obelisk {

class SymbolTable;
struct DimExpr;

class Dim {
 public:
  constexpr Dim(int64_t value = 0) : code_(value) {}  // NOLINT: implicit, a number is a Dim

  constexpr bool is_number() const { return code_ >= kFirstNumber; }
  // Throws Bug for an expression.
  int64_t number() const {
    if (!is_number()) [[unlikely]]
      fail_symbolic();
    return code_;
  }

  // Same number or same canonical expression. False does not mean "different": see could_equal().
  friend constexpr bool operator==(Dim a, Dim b) { return a.code_ == b.code_; }
  // False only where the two can never be equal: different numbers, or expressions a constant
  // apart.
  friend bool could_equal(Dim a, Dim b);

  friend Dim operator+(Dim a, Dim b) {
    if (a.is_number() && b.is_number()) return Dim(a.code_ + b.code_);
    return symbolic_add(a, b);
  }
  friend Dim operator*(Dim a, Dim b) {
    if (a.is_number() && b.is_number()) return Dim(a.code_ * b.code_);
    return symbolic_mul(a, b);
  }
  // Throws ShapeError when the difference is a negative number.
  friend Dim operator-(Dim a, Dim b) {
    if (a.is_number() && b.is_number() && a.code_ >= b.code_) return Dim(a.code_ - b.code_);
    return symbolic_subtract(a, b);
  }
  // Exact quotient by a positive number; throws ShapeError when the remainder is not provably zero.
  Dim divided_by(int64_t divisor) const;

 private:
  friend class SymbolTable;
  static Dim of(const DimExpr* expr) {
    Dim dim;
    dim.code_ = INT64_MIN + reinterpret_cast<int64_t>(expr);
    return dim;
  }
  const DimExpr& expr() const { return *reinterpret_cast<const DimExpr*>(code_ - INT64_MIN); }

  static Dim symbolic_add(Dim a, Dim b);
  static Dim symbolic_mul(Dim a, Dim b);
  static Dim symbolic_subtract(Dim a, Dim b);
  [[noreturn]] void fail_symbolic() const;
  friend std::string to_string(Dim dim);
  friend std::string symbol_name(Dim dim);
  friend std::vector<std::string> symbol_names(Dim dim);
  friend int64_t evaluate(Dim dim, const std::map<std::string, int64_t>& symbols);

  // From kFirstNumber on: the number. Below: INT64_MIN plus the address of an interned expression
  // (user-space addresses are positive, and far below 2^62). So -1 is a number that shape rules can
  // refuse.
  static constexpr int64_t kFirstNumber = INT64_MIN / 2;
  int64_t code_;
};

// a <= b, as far as numbers tell: false only where it can never be.
inline bool could_be_ordered(Dim a, Dim b) {
  return !a.is_number() || !b.is_number() || a.number() <= b.number();
}

std::string to_string(Dim dim);
// The name of a symbol that stands alone; empty for numbers and other expressions.
std::string symbol_name(Dim dim);
// Of all symbols in it, in order, some of them repeated.
std::vector<std::string> symbol_names(Dim dim);

// The number that a dim is under given values of its symbols. Throws ShapeError for a symbol
// without a value and for a negative result.
using SymbolValues = std::map<std::string, int64_t>;
int64_t evaluate(Dim dim, const SymbolValues& symbols);

using DimShape = DimList<Dim>;
std::string to_string(const DimShape& shape);
DimShape to_dims(const Shape& shape);
// Throws Bug when a dim is symbolic.
Shape to_numbers(const DimShape& dims);
Dim product(const DimShape& dims);
Shape evaluate(const DimShape& dims, const SymbolValues& symbols);
// Whether all dims are numbers.
bool is_numeric(const DimShape& dims);

// Owns the symbols and expressions of one trace. Not thread-safe.
class SymbolTable {
 public:
  SymbolTable();
  ~SymbolTable();
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;

  // The same name gives the same symbol.
  Dim symbol(std::string_view name);
  // The inverse of to_string(): "4*B*T - 1". Throws ValueError for anything else.
  Dim parse(std::string_view text);

 private:
  friend class Dim;
  Dim intern(DimExpr expr);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace obelisk
