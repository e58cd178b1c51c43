#include "framework/base/build_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace obelisk {
namespace {

TEST(BuildInfo, NamesCommitFlagsAndCompiler) {
  const BuildInfo& info = build_info();
  EXPECT_THAT(std::string(info.version), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(std::string(info.commit),
              testing::AnyOf("unknown", testing::MatchesRegex("[0-9a-f]{12}")));
  // The rule that makes results independent of the optimiser must be among the flags.
  EXPECT_THAT(std::string(info.flags), testing::HasSubstr("-ffp-contract=off"));
  EXPECT_THAT(std::string(info.flags), testing::Not(testing::HasSubstr("$<")));
  EXPECT_THAT(std::string(info.build_type), testing::Not(testing::HasSubstr("unknown")));
  EXPECT_THAT(std::string(info.compiler), testing::MatchesRegex("(g|clang)\\+\\+ .*[0-9]+.*"));
}

TEST(BuildInfo, IdIsOneLine) {
  const std::string id = build_id();
  EXPECT_EQ(id.find('\n'), std::string::npos);
  EXPECT_THAT(id, testing::StartsWith("obelisk "));
  EXPECT_THAT(id, testing::HasSubstr("commit " + std::string(build_info().commit)));
  EXPECT_EQ(id.find(" modified") != std::string::npos, build_info().modified);
}

}  // namespace
}  // namespace obelisk
