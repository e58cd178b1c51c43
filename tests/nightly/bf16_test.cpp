// 200 steps in bf16 beside the same steps in f32: see tests/support/bf16_bound.h.
#include <gtest/gtest.h>

#include <fstream>

#include "parallel/tasks/pretrain.h"
#include "recipes/trainer/build.h"
#include "tests/support/bf16_bound.h"

namespace obelisk {
namespace {

constexpr int64_t kSteps = 200;

std::vector<double> losses(const parallel::Gpt2Config& model, parallel::PretrainOptions options,
                           const std::shared_ptr<const Tokenizer>& tokenizer,
                           const std::string& text, DType dtype) {
  options.dtype = dtype;
  ExecContext context({.num_threads = 2});
  ExecScope scope(context);
  const parallel::ProcessMesh mesh({.dp = 1}, parallel::self_communicator());
  parallel::PretrainTask task(model, options, tokenizer,
                              split_text(*tokenizer, text, 0.1, options.sequence_length, "text"),
                              mesh);
  std::vector<double> list;
  for (int64_t i = 0; i < kSteps; ++i) list.push_back(task.step(i).loss);
  return list;
}

// Single steps within the bound, and no drift: the mean of fifty within a quarter of it. Writes
// both curves to `file`.
void expect_bf16_follows(const parallel::Gpt2Config& model,
                         const parallel::PretrainOptions& options,
                         const std::shared_ptr<const Tokenizer>& tokenizer, const char* file) {
  const std::string text = read_text_file(OBELISK_DATA "/tinyshakespeare.txt");
  const std::vector<double> f32 = losses(model, options, tokenizer, text, DType::F32);
  const std::vector<double> bf16 = losses(model, options, tokenizer, text, DType::BF16);
  std::ofstream table(testing::TempDir() + file);
  const double bound =
      bf16_loss_bound(static_cast<int>(model.num_layers),
                      static_cast<double>(options.sequences * options.sequence_length));
  double worst = 0;
  std::vector<double> means;
  for (size_t i = 0; i < f32.size(); ++i) {
    const double difference = bf16[i] - f32[i];
    table << i << '\t' << f32[i] << '\t' << bf16[i] << '\n';
    EXPECT_LE(std::abs(difference), bound) << "step " << i;
    worst = std::max(worst, std::abs(difference));
    if (i % 50 == 0) means.push_back(0);
    means.back() += difference / 50;
  }
  for (const double mean : means) EXPECT_LE(std::abs(mean), bound / 4);
  EXPECT_LT(f32.back(), f32.front() - 1);
  std::printf("%s: largest difference %.5f, means of fifty %.5f %.5f %.5f %.5f, bound %.5f\n", file,
              worst, means[0], means[1], means[2], means[3], bound);
}

TEST(Bf16Follows, TheCharacterRun) {
  const std::vector<std::string> overrides{"data.path=" OBELISK_DATA "/tinyshakespeare.txt"};
  const LoadedRecipe loaded = load_recipe("recipes/llm/shakespeare_char.yaml", overrides);
  const auto tokenizer = build_tokenizer(loaded.recipe.tokenizer(),
                                         read_text_file(OBELISK_DATA "/tinyshakespeare.txt"));
  expect_bf16_follows(build_model_config(loaded.recipe.model(), tokenizer->vocabulary_size()),
                      build_pretrain_options(loaded.recipe), tokenizer, "bf16_char.tsv");
}

// GPT-2 124M with its own vocabulary, of which bytes are the first 256 ids.
TEST(Bf16Follows, Gpt2OnBytes) {
  parallel::PretrainOptions options;
  options.sequences = 2;
  options.sequence_length = 128;
  options.schedule = {.peak_lr = 3e-4, .min_lr = 3e-5, .warmup_steps = 20, .decay_steps = kSteps};
  expect_bf16_follows({.vocabulary_size = 50257,
                       .context_length = 1024,
                       .num_layers = 12,
                       .num_heads = 12,
                       .width = 768},
                      options, make_byte_tokenizer(), "bf16_gpt2.tsv");
}

}  // namespace
}  // namespace obelisk
