#include "framework/op/dim.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <vector>

namespace obelisk {

// Symbols of a product, in order, with repetition: B*B*T is {B, B, T}. The empty product is the
// constant term.
using Monomial = std::vector<std::string>;

struct DimExpr {
  SymbolTable* table;
  std::map<Monomial, int64_t> terms;  // coefficients are never zero
};

struct SymbolTable::Impl {
  std::unordered_map<std::string, std::unique_ptr<DimExpr>> by_text;
};

namespace {

std::string text_of(const DimExpr& expr) {
  std::string text;
  // Highest terms first, so that the constant comes last.
  for (auto it = expr.terms.rbegin(); it != expr.terms.rend(); ++it) {
    const auto& [monomial, coefficient] = *it;
    if (!text.empty()) text += coefficient < 0 ? " - " : " + ";
    const int64_t shown = text.empty() ? coefficient : std::abs(coefficient);
    if (monomial.empty()) {
      text += std::to_string(shown);
      continue;
    }
    if (shown == -1) text += "-";
    if (shown != 1 && shown != -1) text += std::to_string(shown) + "*";
    for (size_t i = 0; i < monomial.size(); ++i) text += (i > 0 ? "*" : "") + monomial[i];
  }
  return text;
}

void add_term(DimExpr& expr, const Monomial& monomial, int64_t coefficient) {
  int64_t& slot = expr.terms[monomial];
  slot += coefficient;
  if (slot == 0) expr.terms.erase(monomial);
}

}  // namespace

Dim Dim::symbolic_add(Dim a, Dim b) {
  if (a.is_number()) std::swap(a, b);
  DimExpr sum = a.expr();
  if (b.is_number()) {
    if (b.code_ == 0) return a;
    add_term(sum, {}, b.code_);
  } else {
    for (const auto& [monomial, coefficient] : b.expr().terms) add_term(sum, monomial, coefficient);
  }
  return sum.table->intern(std::move(sum));
}

Dim Dim::symbolic_mul(Dim a, Dim b) {
  if (a.is_number()) std::swap(a, b);
  if (b.is_number() && b.code_ == 0) return Dim(0);
  if (b.is_number() && b.code_ == 1) return a;
  DimExpr result{a.expr().table, {}};
  const std::map<Monomial, int64_t> factor =
      b.is_number() ? std::map<Monomial, int64_t>{{{}, b.code_}} : b.expr().terms;
  for (const auto& [left, left_coefficient] : a.expr().terms)
    for (const auto& [right, right_coefficient] : factor) {
      Monomial monomial;
      std::merge(left.begin(), left.end(), right.begin(), right.end(),
                 std::back_inserter(monomial));
      add_term(result, monomial, left_coefficient * right_coefficient);
    }
  return result.table->intern(std::move(result));
}

Dim Dim::symbolic_subtract(Dim a, Dim b) {
  OBELISK_CHECK(!a.is_number() || !b.is_number(), ShapeError,
                "dim: must not be negative; got {} - {}", a.code_, b.code_);
  DimExpr difference = a.is_number() ? DimExpr{b.expr().table, {}} : a.expr();
  if (a.is_number() && a.code_ != 0) add_term(difference, {}, a.code_);
  if (b.is_number()) {
    if (b.code_ != 0) add_term(difference, {}, -b.code_);
  } else {
    for (const auto& [monomial, coefficient] : b.expr().terms)
      add_term(difference, monomial, -coefficient);
  }
  return difference.table->intern(std::move(difference));
}

Dim Dim::divided_by(int64_t divisor) const {
  OBELISK_CHECK(divisor > 0, ShapeError, "dim: divisor must be positive; got {}", divisor);
  if (is_number()) {
    OBELISK_CHECK(code_ % divisor == 0, ShapeError, "dim: {} must be divisible by {}", code_,
                  divisor);
    return Dim(code_ / divisor);
  }
  DimExpr quotient = expr();
  for (auto& [monomial, coefficient] : quotient.terms) {
    OBELISK_CHECK(coefficient % divisor == 0, ShapeError, "dim: {} is not provably divisible by {}",
                  to_string(*this), divisor);
    coefficient /= divisor;
  }
  return quotient.table->intern(std::move(quotient));
}

bool could_equal(Dim a, Dim b) {
  if (a == b) return true;
  if (a.is_number() && b.is_number()) return false;
  DimExpr difference = a.is_number() ? DimExpr{b.expr().table, {{{}, a.code_}}} : a.expr();
  if (!a.is_number() && b.is_number()) add_term(difference, {}, -b.code_);
  if (!b.is_number())
    for (const auto& [monomial, coefficient] : b.expr().terms)
      add_term(difference, monomial, -coefficient);
  // A difference without symbols is a non-zero constant.
  return difference.terms.size() > 1 || !difference.terms.contains(Monomial{});
}

void Dim::fail_symbolic() const {
  raise<Bug>("bug: the symbolic dim {} was used as a number", to_string(*this));
}

std::string to_string(Dim dim) {
  return dim.is_number() ? std::to_string(dim.code_) : text_of(dim.expr());
}

std::string to_string(const DimShape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + to_string(shape[i]);
  return text + "]";
}

DimShape to_dims(const Shape& shape) {
  DimShape dims;
  for (int64_t dim : shape) dims.push_back(dim);
  return dims;
}

Shape to_numbers(const DimShape& dims) {
  Shape shape;
  for (const Dim& dim : dims) shape.push_back(dim.number());
  return shape;
}

std::string symbol_name(Dim dim) {
  if (dim.is_number()) return "";
  const auto& terms = dim.expr().terms;
  const auto& [monomial, coefficient] = *terms.begin();
  return terms.size() == 1 && monomial.size() == 1 && coefficient == 1 ? monomial[0] : "";
}

std::vector<std::string> symbol_names(Dim dim) {
  std::vector<std::string> names;
  if (dim.is_number()) return names;
  for (const auto& [monomial, coefficient] : dim.expr().terms)
    names.insert(names.end(), monomial.begin(), monomial.end());
  return names;
}

int64_t evaluate(Dim dim, const SymbolValues& symbols) {
  if (dim.is_number()) return dim.code_;
  int64_t sum = 0;
  for (const auto& [monomial, coefficient] : dim.expr().terms) {
    int64_t term = coefficient;
    for (const std::string& name : monomial) {
      const auto found = symbols.find(name);
      OBELISK_CHECK(found != symbols.end(), ShapeError, "dim: symbol {} of {} has no value", name,
                    to_string(dim));
      term *= found->second;
    }
    sum += term;
  }
  OBELISK_CHECK(sum >= 0, ShapeError, "dim: {} must not be negative; got {}", to_string(dim), sum);
  return sum;
}

Shape evaluate(const DimShape& dims, const SymbolValues& symbols) {
  Shape shape;
  for (const Dim& dim : dims) shape.push_back(evaluate(dim, symbols));
  return shape;
}

bool is_numeric(const DimShape& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_number(); });
}

Dim product(const DimShape& dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

SymbolTable::SymbolTable() : impl_(std::make_unique<Impl>()) {}
SymbolTable::~SymbolTable() = default;

Dim SymbolTable::symbol(std::string_view name) {
  return intern({this, {{{std::string(name)}, 1}}});
}

Dim SymbolTable::parse(std::string_view text) {
  const auto refuse = [&] { raise<ValueError>("dim: must read like 4*B*T - 1; got '{}'", text); };
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  DimExpr expr{this, {}};
  size_t at = 0;
  int64_t sign = 1;
  if (text.starts_with('-')) {
    sign = -1;
    at = 1;
  }
  while (true) {
    int64_t coefficient = sign;
    Monomial monomial;
    while (true) {
      const size_t begin = at;
      while (at < text.size() && is_word(text[at])) ++at;
      const std::string factor(text.substr(begin, at - begin));
      if (factor.empty() || factor.size() > 18) refuse();
      if (factor.find_first_not_of("0123456789") == std::string::npos) {
        if (__builtin_mul_overflow(coefficient, std::stoll(factor), &coefficient)) refuse();
      } else if (factor[0] >= '0' && factor[0] <= '9') {
        refuse();
      } else {
        monomial.push_back(factor);
      }
      if (at >= text.size() || text[at] != '*') break;
      ++at;
    }
    std::sort(monomial.begin(), monomial.end());
    if (coefficient != 0) add_term(expr, monomial, coefficient);
    if (at == text.size()) break;
    const std::string_view joint = text.substr(at, 3);
    if (joint != " + " && joint != " - ") refuse();
    sign = joint == " + " ? 1 : -1;
    at += 3;
  }
  return intern(std::move(expr));
}

Dim SymbolTable::intern(DimExpr expr) {
  if (expr.terms.empty()) return Dim(0);
  if (expr.terms.size() == 1 && expr.terms.begin()->first.empty()) {
    const int64_t value = expr.terms.begin()->second;
    OBELISK_CHECK(value >= 0, ShapeError, "dim: must not be negative; got {}", value);
    return Dim(value);
  }
  auto [slot, is_new] = impl_->by_text.try_emplace(text_of(expr), nullptr);
  if (is_new) slot->second = std::make_unique<DimExpr>(std::move(expr));
  return Dim::of(slot->second.get());
}

}  // namespace obelisk
