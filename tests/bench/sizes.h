// Sizes of real models for op_bench, beside the odd ones of tests/ops/*_cases.h.
#pragma once

#include <vector>

#include "tests/ops/op_case.h"

namespace obelisk::bench {

// GPT-2 124M at B 4, T 256 (1024 tokens of width 768) and nanoGPT's character model at B 12, T 64
// (768 tokens of width 128); attention also at T 1024; AdamW over 16M parameters, more than caches
// hold. For a run in `dtype`: in bf16 AdamW writes its copy as well.
std::vector<OpCases> model_sizes(DType dtype);

}  // namespace obelisk::bench
