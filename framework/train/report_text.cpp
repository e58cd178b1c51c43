#include "framework/train/report_text.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <iterator>

namespace obelisk {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// C0, DEL and C1: a terminal may take U+009B for the start of an escape sequence.
bool is_control(std::string_view code_point) {
  const auto first = static_cast<unsigned char>(code_point[0]);
  if (code_point.size() == 1) return first < 0x20 || first == 0x7F;
  return code_point.size() == 2 && first == 0xC2 &&
         static_cast<unsigned char>(code_point[1]) < 0xA0;
}

// Calls with each code point, or with an empty view for a byte that is not UTF-8.
template <typename Visit>
void each_code_point(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    visit(text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void append_printable(std::string& out, std::string_view code_point) {
  if (code_point == "\r") return;
  if (code_point.empty() || (is_control(code_point) && code_point != "\n" && code_point != "\t")) {
    out += kReplacement;
  } else {
    out += code_point;
  }
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  // The second byte's range rules out overlong forms, surrogates and values past U+10FFFF.
  unsigned low = 0x80, high = 0xBF;
  if (byte(0) == 0xE0) low = 0xA0;
  if (byte(0) == 0xED) high = 0x9F;
  if (byte(0) == 0xF0) low = 0x90;
  if (byte(0) == 0xF4) high = 0x8F;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_code_point(text, [&](std::string_view code_point) { append_printable(out, code_point); });
  return out;
}

std::string html_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  each_code_point(text, [&](std::string_view code_point) {
    if (code_point == "&") {
      out += "&amp;";
    } else if (code_point == "<") {
      out += "&lt;";
    } else if (code_point == ">") {
      out += "&gt;";
    } else if (code_point == "\"") {
      out += "&quot;";
    } else if (code_point == "'") {
      out += "&#39;";
    } else {
      append_printable(out, code_point);
    }
  });
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  each_code_point(text, [&](std::string_view code_point) {
    if (code_point.empty()) {
      out += kReplacement;
    } else if (code_point == "\"" || code_point == "\\") {
      out += '\\';
      out += code_point;
    } else if (code_point == "\n") {
      out += "\\n";
    } else if (code_point.size() == 1 && is_control(code_point)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}",
                     static_cast<unsigned char>(code_point[0]));
    } else {
      out += code_point;
    }
  });
  out += '"';
}

void append_count(std::string& out, double value) {
  constexpr std::array<const char*, 6> kSuffixes = {"", "k", "M", "G", "T", "P"};
  size_t i = 0;
  // 999.5 would print as 1e+03.
  while (std::abs(value) >= 999.5 && std::isfinite(value) && i + 1 < kSuffixes.size()) {
    value /= 1000;
    ++i;
  }
  fmt::format_to(std::back_inserter(out), "{:.3g}{}", value, kSuffixes[i]);
}

void append_duration(std::string& out, double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) {
    out += '-';
    return;
  }
  auto rest = static_cast<int64_t>(std::llround(seconds));
  if (rest >= 86400) fmt::format_to(std::back_inserter(out), "{}d ", rest / 86400);
  const bool hours = rest >= 3600;
  rest %= 86400;
  if (hours) {
    fmt::format_to(std::back_inserter(out), "{}:{:02}:{:02}", rest / 3600, rest / 60 % 60,
                   rest % 60);
  } else {
    fmt::format_to(std::back_inserter(out), "{}:{:02}", rest / 60, rest % 60);
  }
}

std::string count_text(double value) {
  std::string out;
  append_count(out, value);
  return out;
}

std::string duration_text(double seconds) {
  std::string out;
  append_duration(out, seconds);
  return out;
}

}  // namespace obelisk
