// recipes/llm/shakespeare_char.yaml on tiny Shakespeare, as the trainer runs it.
#pragma once

#include <string>
#include <vector>

#include "framework/train/loop.h"
#include "recipes/trainer/build.h"

namespace obelisk {

// Loss over the whole validation split (111,488 targets) after `steps` steps.
inline double shakespeare_validation_loss(int64_t seed, int64_t steps) {
  const std::vector<std::string> overrides{"data.path=" OBELISK_DATA "/tinyshakespeare.txt",
                                           "seed=" + std::to_string(seed)};
  const LoadedRecipe loaded = load_recipe("recipes/llm/shakespeare_char.yaml", overrides);
  const recipe::Recipe& recipe = loaded.recipe;
  ExecContext context({.num_threads = threads_per_rank(recipe, 1)});
  ExecScope scope(context);
  const parallel::ProcessMesh mesh({.dp = 1}, parallel::self_communicator());
  const std::string text = read_text_file(recipe.data().path());
  const auto tokenizer = build_tokenizer(recipe.tokenizer(), text);
  parallel::PretrainTask task(build_model_config(recipe.model(), tokenizer->vocabulary_size()),
                              build_pretrain_options(recipe), tokenizer,
                              split_text(*tokenizer, text, recipe.data().validation_fraction(),
                                         recipe.batch().sequence_length(), recipe.data().path()),
                              mesh);
  RunResult result;
  run_training(task, {.steps = steps}, {}, result);
  return result.validation_loss;
}

}  // namespace obelisk
