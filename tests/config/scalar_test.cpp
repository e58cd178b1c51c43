#include "framework/config/scalar.h"

#include <gtest/gtest.h>

#include <limits>

namespace obelisk {
namespace {

Scalar plain(const std::string& text) { return {text, Scalar::Style::Plain}; }
Scalar quoted_scalar(const std::string& text) { return {text, Scalar::Style::Quoted}; }
Scalar from_command_line(const std::string& text) { return {text, Scalar::Style::CommandLine}; }

struct Refusal {
  std::string text;
  std::string problem;
};

TEST(Scalar, Integers) {
  EXPECT_EQ(parse_integer(plain("0")).value, 0);
  EXPECT_EQ(parse_integer(plain("-0")).value, 0);
  EXPECT_EQ(parse_integer(plain("+7")).value, 7);
  EXPECT_EQ(parse_integer(plain("-12")).value, -12);
  EXPECT_EQ(parse_integer(plain("9223372036854775807")).value, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_integer(plain("-9223372036854775808")).value,
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_integer(from_command_line("5")).value, 5);
}

TEST(Scalar, RefusedIntegers) {
  const Refusal cases[] = {
      {"", "must be an integer; got ''"},
      {"-", "must be an integer; got '-'"},
      {"ten", "must be an integer; got 'ten'"},
      {"1.5", "must be an integer; got '1.5'"},
      {"10.0", "must be an integer; got '10.0'; write 10"},
      {"1e3", "must be an integer; got '1e3'; write 1000"},
      {"1.5e3", "must be an integer; got '1.5e3'; write 1500"},
      {"1e300", "must be an integer; got '1e300'"},
      {"1e999", "must be an integer; got '1e999'"},
      {"1_000", "must be an integer; got '1_000'; write 1000"},
      {"1,000", "must be an integer; got '1,000'; write 1000"},
      {"1 000", "must be an integer; got '1 000'; write 1000"},
      {"0x10", "must be an integer; got '0x10'; write 16"},
      {"0xg", "must be an integer; got '0xg'"},
      {"0x", "must be an integer; got '0x'"},
      {"true", "must be an integer; got 'true'"},
      {".nan", "must be an integer; got '.nan'"},
      {"5 steps", "must be an integer; got '5 steps'"},
      {"010",
       "must be an integer without leading zeros, which some YAML readers take for octal; got "
       "'010'; "
       "write 10"},
      {"-007",
       "must be an integer without leading zeros, which some YAML readers take for octal; got "
       "'-007'; "
       "write -7"},
      {"00",
       "must be an integer without leading zeros, which some YAML readers take for octal; got "
       "'00'; "
       "write 0"},
      {"9223372036854775808", "must be an integer that fits in 64 bits; got '9223372036854775808'"},
      {"-9223372036854775809",
       "must be an integer that fits in 64 bits; got '-9223372036854775809'"},
  };
  for (const Refusal& refusal : cases) {
    const auto parsed = parse_integer(plain(refusal.text));
    EXPECT_FALSE(parsed.value) << refusal.text;
    EXPECT_EQ(parsed.problem, refusal.problem);
  }
  EXPECT_EQ(parse_integer(quoted_scalar("5")).problem,
            "must be an integer; got the text '5'; remove the quotes");
}

TEST(Scalar, Numbers) {
  EXPECT_EQ(parse_number(plain("0")).value, 0.0);
  EXPECT_EQ(parse_number(plain("1")).value, 1.0);
  EXPECT_EQ(parse_number(plain("-1.5")).value, -1.5);
  EXPECT_EQ(parse_number(plain("+.5")).value, 0.5);
  EXPECT_EQ(parse_number(plain("5.")).value, 5.0);
  EXPECT_EQ(parse_number(plain("1e-08")).value, 1e-8);
  EXPECT_EQ(parse_number(plain("6.0E+4")).value, 6e4);
  EXPECT_EQ(parse_number(plain("0.1")).value, 0.1);
  EXPECT_EQ(parse_number(plain("1.7976931348623157e308")).value,
            std::numeric_limits<double>::max());
}

TEST(Scalar, RefusedNumbers) {
  const Refusal cases[] = {
      {"", "must be a number; got ''"},
      {".", "must be a number; got '.'"},
      {"e5", "must be a number; got 'e5'"},
      {"1e", "must be a number; got '1e'"},
      {"1e+", "must be a number; got '1e+'"},
      {"1.2.3", "must be a number; got '1.2.3'"},
      {"0,5", "must be a number; got '0,5'; write 0.5"},
      {"1_000", "must be a number; got '1_000'; write 1000"},
      {"0x10", "must be a number; got '0x10'; write 16"},
      {"high", "must be a number; got 'high'"},
      {"nan", "must be a finite number; got 'nan'"},
      {".NaN", "must be a finite number; got '.NaN'"},
      {"-.inf", "must be a finite number; got '-.inf'"},
      {"Infinity", "must be a finite number; got 'Infinity'"},
      {"1e999", "must be 0 or within 2.3e-308 to 1.8e308 in size; got '1e999'"},
      {"1e-999", "must be 0 or within 2.3e-308 to 1.8e308 in size; got '1e-999'"},
      {"01.5", "must be a number without leading zeros; got '01.5'; write 1.5"},
      {"-00.5", "must be a number without leading zeros; got '-00.5'; write -0.5"},
  };
  for (const Refusal& refusal : cases) {
    const auto parsed = parse_number(plain(refusal.text));
    EXPECT_FALSE(parsed.value) << refusal.text;
    EXPECT_EQ(parsed.problem, refusal.problem);
  }
  EXPECT_EQ(parse_number(quoted_scalar("0.5")).problem,
            "must be a number; got the text '0.5'; remove the quotes");
}

TEST(Scalar, Bools) {
  EXPECT_EQ(parse_bool(plain("true")).value, true);
  EXPECT_EQ(parse_bool(from_command_line("false")).value, false);
  const Refusal cases[] = {
      {"yes", "must be true or false; got 'yes'; write true"},
      {"On", "must be true or false; got 'On'; write true"},
      {"True", "must be true or false; got 'True'; write true"},
      {"1", "must be true or false; got '1'; write true"},
      {"no", "must be true or false; got 'no'; write false"},
      {"OFF", "must be true or false; got 'OFF'; write false"},
      {"0", "must be true or false; got '0'; write false"},
      {"maybe", "must be true or false; got 'maybe'"},
      {"", "must be true or false; got ''"},
  };
  for (const Refusal& refusal : cases) {
    const auto parsed = parse_bool(plain(refusal.text));
    EXPECT_FALSE(parsed.value) << refusal.text;
    EXPECT_EQ(parsed.problem, refusal.problem);
  }
  EXPECT_EQ(parse_bool(quoted_scalar("true")).problem,
            "must be true or false; got the text 'true'; remove the quotes");
  EXPECT_EQ(parse_bool(quoted_scalar("no")).problem,
            "must be true or false; got 'no'; write false");
}

TEST(Scalar, Text) {
  EXPECT_EQ(parse_text(plain("runs/a b")).value, "runs/a b");
  EXPECT_EQ(parse_text(plain("1 2 3")).value, "1 2 3");
  EXPECT_EQ(parse_text(plain("2024-01-01")).value, "2024-01-01");
  EXPECT_EQ(parse_text(plain("\xC3\xA4")).value, "\xC3\xA4");
  EXPECT_EQ(parse_text(quoted_scalar("")).value, "");
  EXPECT_EQ(parse_text(quoted_scalar("123")).value, "123");
  EXPECT_EQ(parse_text(quoted_scalar("null")).value, "null");
  EXPECT_EQ(parse_text(from_command_line("123")).value, "123");
  EXPECT_EQ(parse_text(from_command_line("")).value, "");
}

TEST(Scalar, RefusedText) {
  const Refusal cases[] = {
      {"123", "must be text; '123' is a number to YAML; write \"123\" with quotes"},
      {"1_000", "must be text; '1_000' is a number to YAML; write \"1_000\" with quotes"},
      {"0x1F", "must be text; '0x1F' is a number to YAML; write \"0x1F\" with quotes"},
      {".inf", "must be text; '.inf' is a number to YAML; write \".inf\" with quotes"},
      {"yes", "must be text; 'yes' is a bool to YAML; write \"yes\" with quotes"},
      {"False", "must be text; 'False' is a bool to YAML; write \"False\" with quotes"},
      {"~", "must be text; '~' is null to YAML; write \"~\" with quotes"},
  };
  for (const Refusal& refusal : cases) {
    const auto parsed = parse_text(plain(refusal.text));
    EXPECT_FALSE(parsed.value) << refusal.text;
    EXPECT_EQ(parsed.problem, refusal.problem);
  }
  EXPECT_EQ(parse_text(quoted_scalar(std::string("a\0b", 3))).problem,
            "must not hold a zero byte; got 'a\\x00b'");
  EXPECT_EQ(parse_text(from_command_line("a\xFF")).problem, "must be UTF-8 text; got 'a\\xff'");
}

}  // namespace
}  // namespace obelisk
