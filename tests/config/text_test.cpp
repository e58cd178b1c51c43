#include "framework/config/text.h"

#include <gtest/gtest.h>

#include <random>

namespace obelisk {
namespace {

using Words = std::vector<std::string>;

TEST(Text, EditDistanceCountsSwapsOnce) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("schedule", "shedule"), 1);
  EXPECT_EQ(edit_distance("width", "widht"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // no letter is edited twice
}

TEST(Text, EditDistanceIsAMetricOfItsArguments) {
  std::mt19937 random(7);
  const auto word = [&] {
    std::string out;
    for (size_t n = random() % 7; out.size() < n;) out += static_cast<char>('a' + random() % 3);
    return out;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string a = word(), b = word();
    const int distance = edit_distance(a, b);
    EXPECT_EQ(distance, edit_distance(b, a)) << a << " " << b;
    EXPECT_EQ(distance == 0, a == b) << a << " " << b;
    EXPECT_LE(distance, static_cast<int>(std::max(a.size(), b.size()))) << a << " " << b;
    EXPECT_GE(distance, std::abs(static_cast<int>(a.size()) - static_cast<int>(b.size())));
  }
}

TEST(Text, ClosestForgivesOneEditInThreeLetters) {
  const Words keys = {"steps", "warmup_steps", "peak_lr", "dp", "log_every"};
  EXPECT_EQ(closest("stpes", keys), "steps");
  EXPECT_EQ(closest("Warmup-Steps", keys), "warmup_steps");
  EXPECT_EQ(closest("log_evry", keys), "log_every");
  EXPECT_EQ(closest("d", keys), "");
  EXPECT_EQ(closest("xy", keys), "");
  EXPECT_EQ(closest("tp", keys), "dp");
  EXPECT_EQ(closest("", keys), "");
  EXPECT_EQ(closest(std::string(1000, 'a'), keys), "");
}

TEST(Text, ClosestTakesAPartOfAName) {
  const Words keys = {"warmup_steps", "peak_lr", "min_lr"};
  EXPECT_EQ(closest("warmup", keys), "warmup_steps");
  EXPECT_EQ(closest("lr", keys), "peak_lr");
  EXPECT_EQ(closest("up", keys), "");
}

TEST(Text, QuotesFitOnOneLine) {
  EXPECT_EQ(in_quotes("plain"), "'plain'");
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("a\nb\tc"), "'a\\nb\\tc'");
  EXPECT_EQ(in_quotes(std::string("\0\x1b\x7f", 3)), "'\\x00\\x1b\\x7f'");
  EXPECT_EQ(in_quotes("\xC3\xA4\xFF"), "'\xC3\xA4\\xff'");
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
}

TEST(Text, WordLists) {
  EXPECT_EQ(word_list(Words{}, "or"), "");
  EXPECT_EQ(word_list(Words{"a"}, "or"), "a");
  EXPECT_EQ(word_list(Words{"a", "b"}, "or"), "a or b");
  EXPECT_EQ(word_list(Words{"a", "b", "c"}, "and"), "a, b and c");
}

TEST(Text, Utf8) {
  const size_t valid = std::string_view::npos;
  EXPECT_EQ(invalid_utf8(""), valid);
  EXPECT_EQ(invalid_utf8("ascii"), valid);
  EXPECT_EQ(invalid_utf8("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"), valid);
  EXPECT_EQ(invalid_utf8("ab\xFF"), 2u);
  EXPECT_EQ(invalid_utf8("\x80"), 0u);              // continuation without a lead
  EXPECT_EQ(invalid_utf8("\xC3"), 0u);              // cut short
  EXPECT_EQ(invalid_utf8("a\xE2\x82"), 1u);         // cut short
  EXPECT_EQ(invalid_utf8("\xC0\x80"), 0u);          // overlong
  EXPECT_EQ(invalid_utf8("\xE0\x80\x80"), 0u);      // overlong
  EXPECT_EQ(invalid_utf8("\xF0\x80\x80\x80"), 0u);  // overlong
  EXPECT_EQ(invalid_utf8("\xED\xA0\x80"), 0u);      // surrogate
  EXPECT_EQ(invalid_utf8("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
}

}  // namespace
}  // namespace obelisk
