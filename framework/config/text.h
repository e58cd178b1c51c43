// Strings in messages: quoting, lists, and what a mistyped word was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace obelisk {

// The text fit for one line of a message: control bytes and invalid UTF-8 escaped, shortened to
// about 60 bytes; in_quotes puts it in single quotes.
std::string one_line(std::string_view text);
std::string in_quotes(std::string_view text);

// "a", "a or b", "a, b or c"; `last` is the word before the last item.
std::string word_list(std::span<const std::string> words, std::string_view last);

// Byte offset of the first byte that is not part of valid UTF-8 (RFC 3629), or npos.
size_t invalid_utf8(std::string_view text);

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other
// (optimal string alignment: no part of a word is edited twice).
int edit_distance(std::string_view a, std::string_view b);

// The candidate that `word` was probably meant to be, or "": case and '-' for '_' do not count, one
// edit in three letters is forgiven, else a candidate that holds the word as one of its '_' parts
// is taken.
std::string closest(std::string_view word, std::span<const std::string> candidates);

}  // namespace obelisk
