#include <algorithm>
#include <unordered_map>

#include "framework/base/error.h"
#include "framework/tokenizer/tokenizer.h"

namespace obelisk {
namespace {

// Bytes of the UTF-8 character that starts `text`, or 0 where none does: overlong forms, surrogates
// and code points beyond U+10FFFF are not UTF-8.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const uint32_t first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && second < 0xA0) return 0;
    if (first == 0xED && second > 0x9F) return 0;
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && second < 0x90) return 0;
    if (first == 0xF4 && second > 0x8F) return 0;
    return continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// f(position, character) over the characters of text.
template <typename F>
void for_each_character(std::string_view text, F&& f) {
  size_t line = 1, line_start = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t length = character_length(text.substr(i));
    OBELISK_CHECK(length > 0, ValueError,
                  "char tokenizer: text must be UTF-8; got byte 0x{:02x} at line {}, column {}; "
                  "convert the file, or set tokenizer.kind: byte",
                  static_cast<uint8_t>(text[i]), line, i - line_start + 1);
    f(i, text.substr(i, length));
    if (text[i] == '\n') {
      ++line;
      line_start = i + 1;
    }
    i += length;
  }
}

class CharTokenizer final : public Tokenizer {
 public:
  explicit CharTokenizer(std::string_view text) {
    for_each_character(text,
                       [&](size_t, std::string_view c) { ids_.try_emplace(std::string(c), 0); });
    for (const auto& entry : ids_) characters_.push_back(entry.first);
    // UTF-8 sorts like the code points it encodes.
    std::sort(characters_.begin(), characters_.end());
    for (size_t i = 0; i < characters_.size(); ++i) ids_[characters_[i]] = static_cast<int32_t>(i);
  }

  int64_t vocabulary_size() const override { return static_cast<int64_t>(characters_.size()); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for_each_character(text, [&](size_t position, std::string_view c) {
      const auto found = ids_.find(std::string(c));
      OBELISK_CHECK(found != ids_.end(), ValueError,
                    "char tokenizer: every character must occur in the training text; got '{}' at "
                    "byte {}; leave it out, or set tokenizer.kind: byte",
                    c, position);
      ids.push_back(found->second);
    });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) {
      OBELISK_CHECK(id >= 0 && id < vocabulary_size(), ValueError,
                    "char tokenizer: ids must be in [0, {}); got {}", vocabulary_size(), id);
      text += characters_[static_cast<size_t>(id)];
    }
    return text;
  }

 private:
  std::vector<std::string> characters_;
  std::unordered_map<std::string, int32_t> ids_;
};

class ByteTokenizer final : public Tokenizer {
 public:
  int64_t vocabulary_size() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (char c : text) ids.push_back(static_cast<uint8_t>(c));
    return ids;
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) {
      OBELISK_CHECK(id >= 0 && id < 256, ValueError,
                    "byte tokenizer: ids must be in [0, 256); got {}", id);
      text += static_cast<char>(id);
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> make_char_tokenizer(std::string_view text) {
  return std::make_unique<CharTokenizer>(text);
}
std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

}  // namespace obelisk
