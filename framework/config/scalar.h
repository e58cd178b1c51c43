// Strict reading of scalars: what YAML readers guess about (010, yes, 1_000, .inf) is refused with
// the spelling to use instead. No protobuf, no YAML library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace obelisk {

// A scalar as it was written.
struct Scalar {
  enum class Style : uint8_t {
    Plain,        // YAML without quotes
    Quoted,       // YAML with quotes, or a block of text
    CommandLine,  // the right side of --set key=value: text is taken as it is
  };
  std::string text;
  Style style = Style::Plain;
};

// Exactly one of the two is set; problem reads "must be ...; got ...; remedy", without the key.
template <typename T>
struct Parsed {
  std::optional<T> value;
  std::string problem;
};

// Decimal digits with an optional sign; no leading zero, no point or exponent; fits in 64 bits.
Parsed<int64_t> parse_integer(const Scalar& scalar);
// Decimal with an optional sign, point and exponent; no leading zero; finite.
Parsed<double> parse_number(const Scalar& scalar);
// true or false.
Parsed<bool> parse_bool(const Scalar& scalar);
// Valid UTF-8 without a zero byte; a plain YAML scalar must not look like a number, a bool or null.
Parsed<std::string> parse_text(const Scalar& scalar);

// Does the text, written without quotes, stand for text in every YAML dialect?
bool is_plainly_text(std::string_view text);

}  // namespace obelisk
