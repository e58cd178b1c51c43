#include "framework/base/build_info.h"

#include <fmt/core.h>

#ifdef OBELISK_BUILD_STAMP
#include "framework/base/build_stamp.h"
#else
#define OBELISK_STAMP_VERSION "unknown"
#define OBELISK_STAMP_COMMIT "unknown"
#define OBELISK_STAMP_MODIFIED 0
#define OBELISK_STAMP_BUILD_TYPE "unknown"
#define OBELISK_STAMP_FLAGS "unknown"
#endif

namespace obelisk {
namespace {

#ifdef __clang__
constexpr std::string_view kCompiler = "clang++ " __clang_version__;
#else
constexpr std::string_view kCompiler = "g++ " __VERSION__;
#endif

}  // namespace

const BuildInfo& build_info() {
  static constexpr BuildInfo kInfo{OBELISK_STAMP_VERSION,  OBELISK_STAMP_COMMIT,
                                   OBELISK_STAMP_MODIFIED, OBELISK_STAMP_BUILD_TYPE,
                                   OBELISK_STAMP_FLAGS,    kCompiler};
  return kInfo;
}

std::string build_id() {
  const BuildInfo& info = build_info();
  return fmt::format("obelisk {}, commit {}{}, {}, {}", info.version, info.commit,
                     info.modified ? " modified" : "", info.build_type, info.compiler);
}

}  // namespace obelisk
