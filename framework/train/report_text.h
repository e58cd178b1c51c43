// Text helpers of everything that shows a run: events, console, report.
//
// The append_ functions write at the end of `out` and allocate only when it has to grow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/units.h"

namespace obelisk {

// Length in bytes of the UTF-8 code point at the start of `text`: 1 to 4, or 0 where the bytes are
// not UTF-8 (overlong forms, surrogates and values past U+10FFFF included).
size_t utf8_length(std::string_view text);

// Safe to print: not UTF-8 and control characters become U+FFFD, a carriage return goes; newline
// and tab stay. The text of an untrained model must not steer a terminal.
std::string printable(std::string_view text);

// printable(), with the five characters that mean something in HTML escaped.
std::string html_escape(std::string_view text);

// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// 950, 1.23k, 45.6k, 7.89M, 1.2G: three significant digits.
void append_count(std::string& out, double value);

// 0:07, 3:05, 1:02:03, 2d 3:04:05; "-" for what is not a duration.
void append_duration(std::string& out, double seconds);

std::string count_text(double value);
std::string duration_text(double seconds);

}  // namespace obelisk
