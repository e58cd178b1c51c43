// What a training run needs at the least, from sizes alone: nothing is built, so absurd sizes are
// safe to ask about.
#pragma once

#include "parallel/tasks/pretrain.h"

namespace obelisk::parallel {

// Bytes on one rank. Numbers are double: sizes that cannot work must not overflow.
struct MemoryPlan {
  double parameters = 0;   // their count, not bytes
  double weights = 0;      // values, and f32 masters beside bf16 ones
  double gradients = 0;    // of all parameters
  double moments = 0;      // AdamW's two
  double activations = 0;  // what one micro-batch's forward keeps for its backward
  double program = 0;      // modules and tokens: memory outside tensors

  double state() const { return weights + gradients + moments; }
  double total() const { return state() + activations + program; }
};

// A lower bound that real runs exceed by little: a layer keeps 16 widths a token (two norms, two
// residual sums, three of q, k, v, the mixed values, four each side of GELU) and attention's
// log-sum-exp; temporaries of single ops come on top. Selective recompute leaves out GELU's result,
// full recompute keeps two widths of every layer but the one at work. num_tokens: of the data, both
// splits.
MemoryPlan plan_memory(const Gpt2Config& model, const PretrainOptions& options, int64_t dp,
                       int64_t num_tokens);

}  // namespace obelisk::parallel
