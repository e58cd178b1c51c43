#include "framework/train/report_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace obelisk {
namespace {

TEST(Utf8, LengthsAndWhatIsNotUtf8) {
  EXPECT_EQ(utf8_length(""), 0u);
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("\xC3\xA9"), 2u);
  EXPECT_EQ(utf8_length("\xE2\x82\xAC"), 3u);
  EXPECT_EQ(utf8_length("\xF0\x9F\x98\x80"), 4u);
  EXPECT_EQ(utf8_length("\xF4\x8F\xBF\xBF"), 4u);
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xC3(", "\xE2\x82", "\xE2\x82(", "\xFF"})
    EXPECT_EQ(utf8_length(bad), 0u) << bad;
}

TEST(Printable, ControlCodesCannotSteerATerminal) {
  EXPECT_EQ(printable("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(printable("a\r\nb"), "a\nb");
  EXPECT_EQ(printable("\x1b[31m"), "\xEF\xBF\xBD[31m");
  EXPECT_EQ(printable("\x7f"), "\xEF\xBF\xBD");
  EXPECT_EQ(printable("\xC2\x9B"), "\xEF\xBF\xBD") << "C1: the one-character form of ESC [";
  EXPECT_EQ(printable("\xC2\xA0"), "\xC2\xA0");
  EXPECT_EQ(printable("x\xFFy"), "x\xEF\xBF\xBDy");
}

TEST(HtmlEscape, AllFiveAndControlCodes) {
  EXPECT_EQ(html_escape("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(html_escape(std::string("\0", 1)), "\xEF\xBF\xBD");
}

TEST(CountText, ThreeDigits) {
  const std::pair<double, const char*> cases[] = {
      {0, "0"},         {7, "7"},          {999, "999"},   {999.6, "1k"},     {1234, "1.23k"},
      {45600, "45.6k"}, {999499, "999k"},  {999500, "1M"}, {7.89e6, "7.89M"}, {1.2e9, "1.2G"},
      {3e12, "3T"},     {-1234, "-1.23k"}, {0.5, "0.5"},
  };
  for (const auto& [value, text] : cases) EXPECT_EQ(count_text(value), text);
  EXPECT_EQ(count_text(std::numeric_limits<double>::infinity()), "inf");
}

TEST(DurationText, FromSecondsToDays) {
  const std::pair<double, const char*> cases[] = {
      {0, "0:00"},
      {7.4, "0:07"},
      {59.6, "1:00"},
      {185, "3:05"},
      {3723, "1:02:03"},
      {86400, "1d 0:00:00"},
      {2 * 86400 + 3723, "2d 1:02:03"},
      {-1, "-"},
      {std::numeric_limits<double>::quiet_NaN(), "-"},
      {1e300, "-"},
  };
  for (const auto& [seconds, text] : cases) EXPECT_EQ(duration_text(seconds), text) << seconds;
}

TEST(BytesText, BinaryUnits) {
  const std::pair<double, const char*> cases[] = {{0, "0 B"},
                                                  {999, "999 B"},
                                                  {3481.6, "3.4 KiB"},
                                                  {312.0 * (1 << 20), "312 MiB"},
                                                  {1.5 * (1 << 30), "1.5 GiB"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(bytes_text(bytes), text);
}

}  // namespace
}  // namespace obelisk
