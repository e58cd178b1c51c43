// The instruction set that kernels may use.
#pragma once

#include <string>
#include <string_view>

namespace obelisk::ops {

// Caps Highway's and oneDNN's run-time dispatch; names: "baseline" (SSE2; oneDNN: SSE4.1), "avx2",
// "best". Call it before the first kernel of the process runs: oneDNN reads its cap once. Throws
// RecipeError for another name.
void limit_isa(std::string_view name);

// What Highway's dispatch uses now, such as "AVX2".
std::string active_isa();

}  // namespace obelisk::ops
