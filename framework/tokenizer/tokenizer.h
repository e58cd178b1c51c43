// Tokenizer: text to token ids and back. Two that need no vocabulary file: characters and bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace obelisk {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocabulary_size() const = 0;
  // Throws ValueError, with the place in the text, for what the vocabulary does not hold.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // Throws ValueError for an id outside [0, vocabulary_size).
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
};

// One id a distinct Unicode character of `text`, in order of code point. Throws ValueError, with
// line and column, where the text is not UTF-8.
std::unique_ptr<Tokenizer> make_char_tokenizer(std::string_view text);

// One id a byte: 256, whatever the text.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

}  // namespace obelisk
