// The task `pretrain`: next-token training of a model from scratch on one text.
#pragma once

#include <functional>
#include <memory>

#include "framework/data/text_data.h"
#include "framework/train/task.h"
#include "parallel/mesh/mesh.h"
#include "parallel/models/gpt2.h"
#include "parallel/optim/adamw.h"

namespace obelisk::parallel {

struct SampleOptions {
  int64_t tokens = 0;  // 0: none
  double temperature = 1.0;
  int64_t top_k = 0;
  std::string prompt = "\n";
};

struct PretrainOptions {
  uint64_t seed = 1234;
  // Of weights and activations: F32, BF16 or F64. See FlatParameters for bf16.
  DType dtype = DType::F32;
  int64_t sequences = 0;  // of an optimizer step, over all ranks
  int64_t sequence_length = 0;
  int64_t micro_batch_size = 0;  // sequences of one forward on a rank; 0: all of its share
  Recompute recompute = Recompute::Selective;
  int64_t validation_sequences = 0;  // windows of a validation; 0: the whole split
  AdamWOptions optimizer;
  Schedule schedule;
  SampleOptions sample;
};

// The prompt as tokens; none when no sample is wanted. Throws ValueError when it is empty or holds
// what the tokenizer cannot encode.
std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, const SampleOptions& options);

class PretrainTask final : public Task {
 public:
  // `random_batches` is where training sequences come from: random windows of data.train. Tests
  // bring their own.
  using BatchSource = std::function<TokenBatch(int64_t step, int64_t first, int64_t count)>;

  // Takes the model's memory and initialises it. Throws ValueError when the prompt cannot be
  // encoded or is empty, ShapeError when sizes do not fit. The mesh must outlive the task.
  PretrainTask(const Gpt2Config& model, const PretrainOptions& options,
               std::shared_ptr<const Tokenizer> tokenizer, TextData data, const ProcessMesh& mesh);

  StepResult step(int64_t index) override;
  ValidationRecord validate() override;
  std::string sample() override;
  int64_t memory_bytes() const override;
  uint32_t agree(uint32_t flags) override;

  const Gpt2& model() const { return model_; }
  const FlatParameters& parameters() const { return parameters_; }
  void set_batch_source(BatchSource source) { batches_ = std::move(source); }

 private:
  // Adds the gradients of this rank's share of the batch; the share's sum of token losses.
  double accumulate_gradients(int64_t index, PhaseSeconds& phases);
  // Sequences [first, first + count) of a step, forward and backward; their sum of token losses.
  double run_micro_batch(int64_t index, int64_t first, int64_t count, PhaseSeconds& phases);
  double summed_over_ranks(double value) const;

  PretrainOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  TextData data_;
  const ProcessMesh& mesh_;
  Gpt2 model_;
  FlatParameters parameters_;
  AdamW optimizer_;
  BatchSource batches_;
  std::vector<int32_t> prompt_;
  int64_t sequences_per_rank_ = 0;
  Tensor flags_;  // I64 [32], of agree()
};

}  // namespace obelisk::parallel
