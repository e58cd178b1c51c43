#include "recipes/trainer/build.h"

#include <algorithm>

#include "framework/base/machine.h"

namespace obelisk {

namespace {

DType build_dtype(recipe::Train::Precision precision) {
  switch (precision) {
    case recipe::Train::F32:
      return DType::F32;
    case recipe::Train::BF16:
      return DType::BF16;
    default:
      return DType::F64;
  }
}

parallel::Recompute build_recompute(recipe::Train::Recompute recompute) {
  switch (recompute) {
    case recipe::Train::NONE:
      return parallel::Recompute::None;
    case recipe::Train::SELECTIVE:
      return parallel::Recompute::Selective;
    case recipe::Train::FULL:
      break;
  }
  return parallel::Recompute::Full;
}

}  // namespace

std::shared_ptr<const Tokenizer> build_tokenizer(const recipe::Tokenizer& tokenizer,
                                                 std::string_view text) {
  if (tokenizer.kind() == recipe::Tokenizer::BYTE) return make_byte_tokenizer();
  return make_char_tokenizer(text);
}

parallel::Gpt2Config build_model_config(const recipe::Model& model, int64_t vocabulary_size) {
  return {.vocabulary_size = vocabulary_size,
          .context_length = model.context_length(),
          .num_layers = model.num_layers(),
          .num_heads = model.num_heads(),
          .width = model.width(),
          .dropout = model.dropout(),
          .bias = model.bias(),
          .activation = model.activation() == recipe::Model::GELU_ERF ? ops::GeluForm::Erf
                                                                      : ops::GeluForm::Tanh,
          .tied_head = model.tied_head(),
          .layer_norm_epsilon = model.layer_norm_epsilon(),
          .init_std = model.init_std()};
}

parallel::PretrainOptions build_pretrain_options(const recipe::Recipe& recipe) {
  const recipe::Optimizer& optimizer = recipe.optimizer();
  const recipe::Train& train = recipe.train();
  parallel::PretrainOptions options;
  options.seed = static_cast<uint64_t>(recipe.seed());
  options.dtype = build_dtype(train.precision());
  options.recompute = build_recompute(train.recompute());
  options.sequences = recipe.batch().sequences();
  options.sequence_length = recipe.batch().sequence_length();
  options.micro_batch_size = recipe.batch().micro_batch_size();
  options.validation_sequences = train.validation_sequences();
  options.optimizer = {.beta1 = optimizer.beta1(),
                       .beta2 = optimizer.beta2(),
                       .epsilon = optimizer.epsilon(),
                       .weight_decay = optimizer.weight_decay(),
                       .grad_clip_norm = optimizer.grad_clip_norm()};
  const bool cosine = optimizer.schedule() == recipe::Optimizer::COSINE;
  options.schedule = {
      .kind = cosine ? parallel::ScheduleKind::Cosine : parallel::ScheduleKind::Constant,
      .peak_lr = optimizer.peak_lr(),
      .min_lr = optimizer.min_lr(),
      .warmup_steps = optimizer.warmup_steps(),
      .decay_steps = optimizer.decay_steps() > 0 ? optimizer.decay_steps() : train.steps()};
  options.sample = {.tokens = recipe.sample().tokens(),
                    .temperature = recipe.sample().temperature(),
                    .top_k = recipe.sample().top_k(),
                    .prompt = recipe.sample().prompt()};
  return options;
}

int threads_per_rank(const recipe::Recipe& recipe, int ranks_on_node) {
  if (recipe.threads() > 0) return recipe.threads();
  return std::max(1, machine_info().cores / ranks_on_node);
}

int64_t memory_limit_per_rank(const recipe::Recipe& recipe, int ranks_on_node) {
  const double limit_gib = recipe.run().memory_limit_gib();
  const int64_t bytes = limit_gib > 0 ? static_cast<int64_t>(limit_gib * 1024 * 1024 * 1024)
                                      : machine_info().memory_available;
  return bytes / ranks_on_node;
}

int64_t tokens_per_step(const recipe::Recipe& recipe) {
  return int64_t{recipe.batch().sequences()} * recipe.batch().sequence_length();
}

std::string describe_model(const parallel::Gpt2Config& config) {
  return fmt::format("gpt2, {} layers, {} heads, width {}, context {}, vocabulary {}",
                     config.num_layers, config.num_heads, config.width, config.context_length,
                     config.vocabulary_size);
}

}  // namespace obelisk
