#include "framework/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

TEST(CharTokenizerTest, NumbersCharactersByCodePoint) {
  const auto tokenizer = make_char_tokenizer("ba\nc\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 b");
  EXPECT_EQ(tokenizer->vocabulary_size(), 8);
  const auto ids = tokenizer->encode("abc\n \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(ids, (std::vector<int32_t>{2, 3, 4, 0, 1, 5, 6, 7}));
  EXPECT_EQ(tokenizer->decode(ids), "abc\n \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(CharTokenizerTest, SaysWhatItCannotEncode) {
  const auto tokenizer = make_char_tokenizer("abc");
  EXPECT_ERROR(
      tokenizer->encode("abxc"), ValueError,
      "char tokenizer: every character must occur in the training text; got 'x' at byte 2; "
      "leave it out, or set tokenizer.kind: byte");
  const std::vector<int32_t> bad{1, 3};
  EXPECT_ERROR(tokenizer->decode(bad), ValueError, "char tokenizer: ids must be in [0, 3); got 3");
}

TEST(CharTokenizerTest, RefusesWhatIsNotUtf8) {
  EXPECT_ERROR(make_char_tokenizer("ab\ncd\xFF"), ValueError,
               "char tokenizer: text must be UTF-8; got byte 0xff at line 2, column 3; convert the "
               "file, or set tokenizer.kind: byte");
  // Overlong form, surrogate, beyond U+10FFFF, lone continuation, cut short.
  for (const char* text : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                           "\xF0\x80\x80\x80", "\x80", "\xE2\x82"})
    EXPECT_THROW(make_char_tokenizer(text), ValueError) << text;
}

TEST(ByteTokenizerTest, IsTheIdentity) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(tokenizer->vocabulary_size(), 256);
  const auto ids = tokenizer->encode("a\xFF");
  EXPECT_EQ(ids, (std::vector<int32_t>{97, 255}));
  EXPECT_EQ(tokenizer->decode(ids), "a\xFF");
  const std::vector<int32_t> bad{256};
  EXPECT_ERROR(tokenizer->decode(bad), ValueError,
               "byte tokenizer: ids must be in [0, 256); got 256");
}

}  // namespace
}  // namespace obelisk
