#include "framework/config/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace obelisk {
namespace {

constexpr size_t kLongestQuote = 60;

// Length of the valid UTF-8 sequence at the start of `text`, 0 when there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool too_large = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string normalised(std::string_view word) {
  std::string out(word);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return out;
}

bool has_part(std::string_view name, std::string_view part) {
  return !part.empty() &&
         fmt::format("_{}_", name).find(fmt::format("_{}_", part)) != std::string::npos;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (i >= kLongestQuote) return out + "...";
    const size_t length = utf8_length(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '\n') {
      out += "\\n";
    } else if (text[i] == '\t') {
      out += "\\t";
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text.substr(i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  return out;
}

std::string in_quotes(std::string_view text) { return "'" + one_line(text) + "'"; }

std::string word_list(std::span<const std::string> words, std::string_view last) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
    out += words[i];
  }
  return out;
}

size_t invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

int edit_distance(std::string_view a, std::string_view b) {
  // rows[i % 3][j]: distance between the first i letters of a and the first j of b.
  std::vector<int> rows[3];
  for (auto& row : rows) row.resize(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitution = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::string closest(std::string_view word, std::span<const std::string> candidates) {
  // Keys are short; a long "word" is no misspelling, and the distance is quadratic.
  constexpr size_t kLongestWord = 64;
  if (word.empty() || word.size() > kLongestWord) return "";
  const std::string wanted = normalised(word);
  std::string best;
  int best_distance = std::max(1, static_cast<int>(wanted.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(wanted, candidate);
    // A candidate all of whose letters changed is not close: 'x' is not a misspelt 'y'.
    if (distance < best_distance && distance < static_cast<int>(wanted.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty()) return best;
  for (const std::string& candidate : candidates) {
    if (has_part(candidate, wanted) || has_part(wanted, candidate)) return candidate;
  }
  return "";
}

}  // namespace obelisk
