// The pieces of a run, made from a recipe.
#pragma once

#include <memory>

#include "parallel/tasks/pretrain.h"
#include "recipes/recipe.h"

namespace obelisk {

std::shared_ptr<const Tokenizer> build_tokenizer(const recipe::Tokenizer& tokenizer,
                                                 std::string_view text);
parallel::Gpt2Config build_model_config(const recipe::Model& model, int64_t vocabulary_size);
parallel::PretrainOptions build_pretrain_options(const recipe::Recipe& recipe);

// Threads of a rank: the recipe's, or the cores of this node divided among its ranks.
int threads_per_rank(const recipe::Recipe& recipe, int ranks_on_node);
// Bytes of tensor memory a rank may take: the recipe's limit, or what the machine has available,
// divided among its ranks.
int64_t memory_limit_per_rank(const recipe::Recipe& recipe, int ranks_on_node);

// Of all ranks.
int64_t tokens_per_step(const recipe::Recipe& recipe);

// "gpt2, 4 layers, 4 heads, width 128, context 64, vocabulary 65"
std::string describe_model(const parallel::Gpt2Config& config);

}  // namespace obelisk
