// GPT-2 (Radford et al. 2019): learned positions, layer norm before each block, MLP of width 4 D,
// output layer tied to the token embedding unless asked otherwise. Without biases and with the erf
// form of GELU it is the model of nanoGPT's character runs.
//
// Dropout, when not zero, is applied after the embedding and to the output of each attention and
// MLP block; attention probabilities are not dropped.
#pragma once

#include <vector>

#include "framework/autograd/recompute.h"
#include "parallel/layers/layers.h"

namespace obelisk::parallel {

struct Gpt2Config {
  int64_t vocabulary_size = 0;
  int64_t context_length = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t width = 0;
  double dropout = 0;
  bool bias = true;
  ops::GeluForm activation = ops::GeluForm::Tanh;
  bool tied_head = true;
  double layer_norm_epsilon = 1e-5;
  double init_std = 0.02;
};

// What a forward keeps for its backward. None: all that backward reads. Selective: not the results
// of cheap ops, such as GELU. Full: only what goes into each layer. Gradients have the same bits.
enum class Recompute { None, Selective, Full };

class Gpt2 : public Module {
 public:
  // Throws ShapeError when a size is not positive or num_heads does not divide width.
  explicit Gpt2(const Gpt2Config& config);
  ~Gpt2();

  // Sum over the targets >= 0 of -log p(target), a scalar. ids, targets: I64 [B, T], T <=
  // context_length. random: I64 [3] = {seed, step, first sample}, for dropout; undefined outside
  // training.
  Tensor loss_sum(const Tensor& ids_BT, const Tensor& targets_BT, const Tensor& random) const;

  // Logits of the last position, [B, V]; f32 from bf16 parameters.
  Tensor next_logits(const Tensor& ids_BT) const;

  void set_recompute(Recompute recompute) { recompute_ = recompute; }

  const Gpt2Config& config() const { return config_; }
  // How many parameters a config has, without building it.
  static double count_parameters(const Gpt2Config& config);
  // Floating point operations of one training step for one token: 6 x (parameters used in products,
  // the head included)
  // + 6 x layers x width x T for causal attention (half of full attention).
  static double training_flops_per_token(const Gpt2Config& config, int64_t sequence_length);

 private:
  class Block;
  Tensor hidden(const Tensor& ids_BT,
                const Tensor& random) const;  // after the last norm, [B, T, D]
  const Tensor& head() const;

  Gpt2Config config_;
  Recompute recompute_ = Recompute::None;
  Embedding wte_;
  Embedding wpe_;
  Dropout dropout_;
  std::vector<std::unique_ptr<Block>> layers_;
  LayerNorm ln_f_;
  std::optional<Linear> lm_head_;
};

}  // namespace obelisk::parallel
