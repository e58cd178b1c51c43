// Rules over several keys of a recipe: each is one sentence, all broken ones are reported at once.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "framework/config/text.h"
#include "recipes/recipe.h"

namespace obelisk {
namespace {

// The multiples of `unit` around `value`: "186 or 192", "6" when there is none below.
std::string multiples_around(int64_t value, int64_t unit) {
  const int64_t below = value / unit * unit;
  if (below == 0) return fmt::format("{}", unit);
  return fmt::format("{} or {}", below, below + unit);
}

// "1, 2, 4 or 8": the divisors of n, at most `limit` of them, the largest.
std::string divisors(int64_t n, size_t limit) {
  std::vector<std::string> out;
  for (int64_t d = n; d >= 1 && out.size() < limit; --d) {
    if (n % d == 0) out.insert(out.begin(), fmt::format("{}", d));
  }
  return word_list(out, "or");
}

void check_model(const LoadedRecipe& loaded, Diagnostics& errors) {
  const recipe::Model& model = loaded.recipe.model();
  if (model.width() % model.num_heads() != 0) {
    errors.add(loaded.places.at("model.width"),
               fmt::format("'model.width' must be a multiple of 'model.num_heads'; got width {}, "
                           "num_heads {}; set width: {}",
                           model.width(), model.num_heads(),
                           multiples_around(model.width(), model.num_heads())));
  }
  const recipe::Batch& batch = loaded.recipe.batch();
  if (batch.sequence_length() > model.context_length()) {
    errors.add(
        loaded.places.at("batch.sequence_length"),
        fmt::format("'batch.sequence_length' must not exceed 'model.context_length'; got {} and "
                    "{}; set sequence_length: {} or context_length: {}",
                    batch.sequence_length(), model.context_length(), model.context_length(),
                    batch.sequence_length()));
  }
}

void check_schedule(const LoadedRecipe& loaded, Diagnostics& errors) {
  const recipe::Optimizer& optimizer = loaded.recipe.optimizer();
  const int64_t steps = loaded.recipe.train().steps();
  const bool cosine = optimizer.schedule() == recipe::Optimizer::COSINE;
  if (cosine && optimizer.min_lr() > optimizer.peak_lr()) {
    errors.add(loaded.places.at("optimizer.min_lr"),
               fmt::format("'optimizer.min_lr' must not exceed 'optimizer.peak_lr'; got {} and {}",
                           optimizer.min_lr(), optimizer.peak_lr()));
  }
  if (optimizer.warmup_steps() > steps) {
    errors.add(loaded.places.at("optimizer.warmup_steps"),
               fmt::format("'optimizer.warmup_steps' must not exceed 'train.steps'; got {} and {}",
                           optimizer.warmup_steps(), steps));
  } else if (cosine && optimizer.decay_steps() > 0 &&
             optimizer.warmup_steps() > optimizer.decay_steps()) {
    errors.add(
        loaded.places.at("optimizer.decay_steps"),
        fmt::format("'optimizer.decay_steps' counts from the first step and must not be below "
                    "'optimizer.warmup_steps'; got {} and {}",
                    optimizer.decay_steps(), optimizer.warmup_steps()));
  }
}

void check_sample(const LoadedRecipe& loaded, Diagnostics& errors) {
  const recipe::Sample& sample = loaded.recipe.sample();
  if (sample.tokens() > 0 && sample.prompt().empty()) {
    errors.add(loaded.places.at("sample.prompt"),
               "'sample.prompt' must not be empty when 'sample.tokens' is above 0: the sample "
               "continues it");
  }
}

void check_mesh(const LoadedRecipe& loaded, int num_ranks, Diagnostics& errors) {
  const int dp = loaded.recipe.mesh().dp();
  if (dp != 0 && dp != num_ranks) {
    errors.add(
        loaded.places.at("mesh.dp"),
        fmt::format("mesh dp {} is {} rank{}, {} {} started; set dp: {} or use -n {}", dp, dp,
                    dp == 1 ? "" : "s", num_ranks, num_ranks == 1 ? "was" : "were", num_ranks, dp));
  }
}

void check_batch(const LoadedRecipe& loaded, int dp, Diagnostics& errors) {
  const recipe::Batch& batch = loaded.recipe.batch();
  if (batch.sequences() % dp != 0) {
    errors.add(
        loaded.places.at("batch.sequences"),
        fmt::format("'batch.sequences' must be a multiple of the {} data-parallel ranks; got {}; "
                    "set sequences: {}",
                    dp, batch.sequences(), multiples_around(batch.sequences(), dp)));
    return;
  }
  const int share = batch.sequences() / dp;
  if (batch.micro_batch_size() > 0 && share % batch.micro_batch_size() != 0) {
    errors.add(
        loaded.places.at("batch.micro_batch_size"),
        fmt::format("'batch.micro_batch_size' must divide the {} sequences of a rank ({} over dp "
                    "{}); got {}; set {}, or 0 for all",
                    share, batch.sequences(), dp, batch.micro_batch_size(), divisors(share, 8)));
  }
}

}  // namespace

void validate(const LoadedRecipe& loaded) {
  Diagnostics errors;
  check_model(loaded, errors);
  check_schedule(loaded, errors);
  check_sample(loaded, errors);
  errors.raise_if_any();
}

void validate(const LoadedRecipe& loaded, int num_ranks) {
  Diagnostics errors;
  check_mesh(loaded, num_ranks, errors);
  const int dp = loaded.recipe.mesh().dp();
  check_batch(loaded, dp == 0 ? num_ranks : dp, errors);
  errors.raise_if_any();
}

}  // namespace obelisk
