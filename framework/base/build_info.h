// What this binary was built from: git commit, build type, compiler and flags.
//
// Read from git at build time (build_info.cmake). A source tree without git, or unpacked inside
// another repository, has the commit "unknown".
#pragma once

#include <string>
#include <string_view>

namespace obelisk {

struct BuildInfo {
  std::string_view version;     // of the project, "0.1.0"
  std::string_view commit;      // 12 hex digits or "unknown"
  bool modified = false;        // the tree differed from that commit, untracked files included
  std::string_view build_type;  // "RelWithDebInfo"
  std::string_view flags;       // what the C++ compiler was given
  std::string_view compiler;    // "g++ 12.2.0"
};

const BuildInfo& build_info();

// One line for logs: "obelisk 0.1.0, commit 3f2a91c0d4e5 modified, RelWithDebInfo, g++ 12.2.0".
std::string build_id();

}  // namespace obelisk
