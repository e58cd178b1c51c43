#include "recipes/trainer/plan.h"

#include <filesystem>

#include "framework/base/units.h"
#include "recipes/trainer/build.h"

namespace obelisk {
namespace {

// The text and its tokens are held in memory. Unknown sizes (no such file) are left to the reader's
// own messages.
void check_text_fits(const std::string& path, int64_t limit) {
  std::error_code error;
  const auto bytes = static_cast<double>(std::filesystem::file_size(path, error));
  if (error) return;
  const double needed = bytes * (1 + sizeof(int32_t));
  OBELISK_CHECK(needed <= static_cast<double>(limit), OutOfMemory,
                "data.path: the text and its tokens must fit memory; got {} for '{}', limit {}; "
                "give a smaller text, or raise run.memory_limit_gib",
                bytes_text(needed), path, bytes_text(static_cast<double>(limit)));
}

void check_fits(const RunPlan& plan) {
  const parallel::MemoryPlan& memory = plan.memory;
  const auto limit = static_cast<double>(plan.memory_limit);
  const bool state_fits = memory.state() + memory.program <= limit;
  OBELISK_CHECK(
      memory.total() <= limit, OutOfMemory,
      "memory: a rank needs at least {} ({} for weights, gradients and moments, {} for "
      "activations, {} besides), which must fit the limit {}; {}, or raise run.memory_limit_gib",
      bytes_text(memory.total()), bytes_text(memory.state()), bytes_text(memory.activations),
      bytes_text(memory.program), bytes_text(limit),
      state_fits ? "lower batch.micro_batch_size or batch.sequence_length"
                 : "lower model.num_layers, model.width or model.context_length");
}

}  // namespace

RunPlan make_plan(const recipe::Recipe& recipe, int num_ranks, int ranks_on_node) {
  RunPlan plan;
  plan.memory_limit = memory_limit_per_rank(recipe, ranks_on_node);
  const recipe::Data& data = recipe.data();
  check_text_fits(data.path(), plan.memory_limit);
  const bool bytes = recipe.tokenizer().kind() == recipe::Tokenizer::BYTE;
  const std::string text = read_text_file(data.path(), bytes ? TextKind::Bytes : TextKind::Text);
  plan.tokenizer = build_tokenizer(recipe.tokenizer(), text);
  plan.data = split_text(*plan.tokenizer, text, data.validation_fraction(),
                         recipe.batch().sequence_length(), data.path());
  plan.model = build_model_config(recipe.model(), plan.tokenizer->vocabulary_size());
  plan.options = build_pretrain_options(recipe);
  parallel::encode_prompt(*plan.tokenizer, plan.options.sample);
  plan.memory = parallel::plan_memory(
      plan.model, plan.options, num_ranks,
      static_cast<int64_t>(plan.data.train.size() + plan.data.validation.size()));
  check_fits(plan);
  return plan;
}

std::string describe_plan(const LoadedRecipe& loaded, int num_ranks, int ranks_on_node) {
  const recipe::Recipe& recipe = loaded.recipe;
  const RunPlan plan = make_plan(recipe, num_ranks, ranks_on_node);
  const parallel::MemoryPlan& memory = plan.memory;
  const auto tokens = static_cast<double>(tokens_per_step(recipe));
  const auto steps = static_cast<double>(recipe.train().steps());
  const double flops =
      parallel::Gpt2::training_flops_per_token(plan.model, recipe.batch().sequence_length()) *
      tokens;
  std::string text;
  auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<14} {}\n", name, value);
  };
  line("model", describe_model(plan.model));
  line("parameters", fmt::format("{:.0f}", memory.parameters));
  line("mesh",
       fmt::format("dp {}, {} threads a rank", num_ranks, threads_per_rank(recipe, ranks_on_node)));
  line("data", fmt::format("{}: {} training tokens, {} validation tokens", recipe.data().path(),
                           plan.data.train.size(), plan.data.validation.size()));
  line("step",
       fmt::format("{:.0f} tokens, {:.2f} GFLOP (6 x parameters in products, and causal attention)",
                   tokens, flops / 1e9));
  line("run", fmt::format("{:.0f} steps, {:.2f} M tokens, {:.2f} times the training text", steps,
                          steps * tokens / 1e6,
                          steps * tokens / static_cast<double>(plan.data.train.size())));
  line("memory a rank", fmt::format("at least {} of {}", bytes_text(memory.total()),
                                    bytes_text(static_cast<double>(plan.memory_limit))));
  for (const auto& [name, bytes] :
       {std::pair{"weights", memory.weights}, std::pair{"gradients", memory.gradients},
        std::pair{"moments", memory.moments}, std::pair{"activations", memory.activations},
        std::pair{"besides", memory.program}})
    line("", fmt::format("{:<12} {}", name, bytes_text(bytes)));
  return text;
}

}  // namespace obelisk
