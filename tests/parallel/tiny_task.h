// A pretraining task of seconds: a two-layer GPT-2 on a text made here.
#pragma once

#include <memory>

#include "framework/tensor/philox.h"
#include "parallel/tasks/pretrain.h"

namespace obelisk::parallel {

// A text with structure: words drawn from a short list by the counter RNG.
inline std::string toy_text(int64_t words) {
  static const char* const kWords[] = {"the",  "king",  "said", "unto",  "his ", "people",
                                       "let ", "there", "be",   "light", "and",  "it was so.\n"};
  const Philox random(1, random_stream("test", "text"), 0);
  std::string text;
  for (int64_t i = 0; i < words; ++i)
    text += std::string(kWords[random.bits(static_cast<uint64_t>(i)) % 12]) + " ";
  return text;
}

inline Gpt2Config tiny_model(int64_t vocabulary_size) {
  return {.vocabulary_size = vocabulary_size,
          .context_length = 16,
          .num_layers = 2,
          .num_heads = 2,
          .width = 32};
}

inline PretrainOptions tiny_options(DType dtype) {
  PretrainOptions options;
  options.dtype = dtype;
  options.sequences = 8;
  options.sequence_length = 16;
  options.optimizer = {.beta2 = 0.99};
  options.schedule = {.peak_lr = 3e-3, .min_lr = 3e-4, .warmup_steps = 5, .decay_steps = 50};
  return options;
}

struct TinyTask {
  TinyTask(const PretrainOptions& options, const ProcessMesh& mesh,
           const std::function<void(Gpt2Config&)>& adapt = {})
      : task([&] {
          const std::string text = toy_text(2000);
          std::shared_ptr<const Tokenizer> tokenizer = make_char_tokenizer(text);
          Gpt2Config model = tiny_model(tokenizer->vocabulary_size());
          if (adapt) adapt(model);
          TextData data = split_text(*tokenizer, text, 0.1, options.sequence_length, "toy");
          return std::make_unique<PretrainTask>(model, options, tokenizer, std::move(data), mesh);
        }()) {}
  std::vector<double> losses(int64_t steps) const {
    std::vector<double> list;
    for (int64_t i = 0; i < steps; ++i) list.push_back(task->step(i).loss);
    return list;
  }
  std::unique_ptr<PretrainTask> task;
};

}  // namespace obelisk::parallel
