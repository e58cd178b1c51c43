#include "framework/config/scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "framework/config/text.h"

namespace obelisk {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_true_word(std::string_view text) {
  return is_one_of(lower(text), {"true", "yes", "on", "y"});
}
bool is_false_word(std::string_view text) {
  return is_one_of(lower(text), {"false", "no", "off", "n"});
}
bool is_null_word(std::string_view text) { return is_one_of(lower(text), {"", "~", "null"}); }

// The parts of a decimal number; digits holds those before the point.
struct Decimal {
  bool valid = false;
  bool whole = false;  // neither point nor exponent
  std::string_view digits;
};

Decimal scan_decimal(std::string_view text) {
  size_t i = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const auto skip_digits = [&] {
    const size_t start = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return text.substr(start, i - start);
  };
  Decimal decimal;
  decimal.whole = true;
  decimal.digits = skip_digits();
  size_t mantissa = decimal.digits.size();
  if (i < text.size() && text[i] == '.') {
    ++i;
    decimal.whole = false;
    mantissa += skip_digits().size();
  }
  bool exponent_ok = true;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    decimal.whole = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    exponent_ok = !skip_digits().empty();
  }
  decimal.valid = mantissa > 0 && exponent_ok && i == text.size();
  return decimal;
}

bool has_leading_zero(const Decimal& decimal) {
  return decimal.digits.size() > 1 && decimal.digits[0] == '0';
}

// The text with its sign and without leading zeros.
std::string without_leading_zeros(std::string_view text) {
  const std::string sign(text.substr(0, text[0] == '-' ? 1 : 0));
  size_t i = text[0] == '-' || text[0] == '+' ? 1 : 0;
  while (i + 1 < text.size() && text[i] == '0' && is_digit(text[i + 1])) ++i;
  return sign + std::string(text.substr(i));
}

// from_chars knows no plus sign.
template <typename T>
std::errc read(std::string_view text, T& value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  return std::from_chars(text.data(), text.data() + text.size(), value).ec;
}

std::optional<double> finite_value(std::string_view text) {
  double value = 0;
  if (!scan_decimal(text).valid || read(text, value) != std::errc() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// "; write 1000" for 1e3, 1_000 or 0x10, where the integer that was meant is certain.
std::string integer_remedy(std::string_view text) {
  const std::optional<double> value = finite_value(text);
  constexpr double kExactlyHeld = 9007199254740992.0;  // 2^53
  if (value && *value == std::floor(*value) && std::abs(*value) <= kExactlyHeld) {
    return fmt::format("; write {}", static_cast<int64_t>(*value));
  }
  std::string bare;
  for (char c : text) {
    if (c != '_' && c != ',' && c != ' ') bare += c;
  }
  const Decimal decimal = scan_decimal(bare);
  if (bare != text && decimal.valid && decimal.whole) {
    return "; write " + without_leading_zeros(bare);
  }
  int64_t hex = 0;
  if (text.starts_with("0x") && text.size() > 2) {
    const auto end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + 2, end, hex, 16);
    if (error == std::errc() && stop == end) return fmt::format("; write {}", hex);
  }
  return "";
}

std::string got(std::string_view text) { return "; got " + in_quotes(text); }

std::string quotes_problem(const Scalar& scalar, std::string_view rule) {
  return fmt::format("{}; got the text {}; remove the quotes", rule, in_quotes(scalar.text));
}

bool is_not_finite_word(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (!text.empty() && text[0] == '.') text.remove_prefix(1);
  return is_one_of(lower(text), {"nan", "inf", "infinity"});
}

}  // namespace

Parsed<int64_t> parse_integer(const Scalar& scalar) {
  constexpr std::string_view kRule = "must be an integer";
  const std::string& text = scalar.text;
  const Decimal decimal = scan_decimal(text);
  if (scalar.style == Scalar::Style::Quoted) return {{}, quotes_problem(scalar, kRule)};
  if (!decimal.valid || !decimal.whole) {
    return {{}, fmt::format("{}{}{}", kRule, got(text), integer_remedy(text))};
  }
  if (has_leading_zero(decimal)) {
    return {{},
            fmt::format("must be an integer without leading zeros, which some YAML readers take "
                        "for octal{}; write {}",
                        got(text), without_leading_zeros(text))};
  }
  int64_t value = 0;
  if (read(text, value) != std::errc()) {
    return {{}, "must be an integer that fits in 64 bits" + got(text)};
  }
  return {value, ""};
}

Parsed<double> parse_number(const Scalar& scalar) {
  constexpr std::string_view kRule = "must be a number";
  const std::string& text = scalar.text;
  const Decimal decimal = scan_decimal(text);
  if (scalar.style == Scalar::Style::Quoted) return {{}, quotes_problem(scalar, kRule)};
  if (is_not_finite_word(text)) return {{}, "must be a finite number" + got(text)};
  if (!decimal.valid) {
    // A comma for the point, or groups of digits.
    std::string pointed = text;
    std::replace(pointed.begin(), pointed.end(), ',', '.');
    const bool comma = pointed != text && finite_value(pointed);
    const std::string remedy = comma ? "; write " + pointed : integer_remedy(text);
    return {{}, fmt::format("{}{}{}", kRule, got(text), remedy)};
  }
  if (has_leading_zero(decimal)) {
    return {{},
            fmt::format("must be a number without leading zeros{}; write {}", got(text),
                        without_leading_zeros(text))};
  }
  double value = 0;
  if (read(text, value) != std::errc()) {
    return {{}, "must be 0 or within 2.3e-308 to 1.8e308 in size" + got(text)};
  }
  return {value, ""};
}

Parsed<bool> parse_bool(const Scalar& scalar) {
  constexpr std::string_view kRule = "must be true or false";
  const std::string& text = scalar.text;
  const bool exact = text == "true" || text == "false";
  if (scalar.style == Scalar::Style::Quoted) {
    if (exact) return {{}, quotes_problem(scalar, kRule)};
  } else if (exact) {
    return {text == "true", ""};
  }
  const std::string_view remedy = is_true_word(text) || text == "1"    ? "; write true"
                                  : is_false_word(text) || text == "0" ? "; write false"
                                                                       : "";
  return {{}, fmt::format("{}{}{}", kRule, got(text), remedy)};
}

Parsed<std::string> parse_text(const Scalar& scalar) {
  const std::string& text = scalar.text;
  if (text.find('\0') != std::string::npos) {
    return {{}, "must not hold a zero byte" + got(text)};
  }
  if (invalid_utf8(text) != std::string::npos) return {{}, "must be UTF-8 text" + got(text)};
  if (scalar.style == Scalar::Style::Plain && !is_plainly_text(text)) {
    const std::string_view kind = is_null_word(text)                          ? "null"
                                  : is_true_word(text) || is_false_word(text) ? "a bool"
                                                                              : "a number";
    return {{},
            fmt::format("must be text; {} is {} to YAML; write \"{}\" with quotes", in_quotes(text),
                        kind, text)};
  }
  return {text, ""};
}

bool is_plainly_text(std::string_view text) {
  // YAML 1.1 knows digit groups (1_000), hexadecimal, octal and binary.
  std::string bare(text);
  std::erase(bare, '_');
  const bool based =
      bare.size() > 2 && bare[0] == '0' && (bare[1] == 'x' || bare[1] == 'o' || bare[1] == 'b');
  return !is_null_word(text) && !is_true_word(text) && !is_false_word(text) && !based &&
         !scan_decimal(bare).valid && !is_not_finite_word(text);
}

}  // namespace obelisk
