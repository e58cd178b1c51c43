// The instruction set that kernels may use.
#pragma once

#include <string>
#include <string_view>

namespace obelisk::ops {

// Caps the run-time dispatch of kernels; names: "baseline" (one lane), "avx2", "best". Call it
// before the first kernel of the process runs. Throws RecipeError for another name.
void limit_isa(std::string_view name);

// What the dispatch uses now, such as "AVX2".
std::string active_isa();

}  // namespace obelisk::ops
