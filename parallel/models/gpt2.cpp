#include "parallel/models/gpt2.h"

#include <cmath>

#include "ops/layout/layout.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/matmul/matmul.h"

namespace obelisk::parallel {

namespace {

Gpt2Config checked(Gpt2Config config) {
  for (const auto& [name, value] : {std::pair{"vocabulary_size", config.vocabulary_size},
                                    {"context_length", config.context_length},
                                    {"num_layers", config.num_layers},
                                    {"num_heads", config.num_heads},
                                    {"width", config.width}})
    OBELISK_CHECK(value > 0, ShapeError, "gpt2: {} must be positive; got {}", name, value);
  OBELISK_CHECK(config.width % config.num_heads == 0, ShapeError,
                "gpt2: num_heads must divide width; got {} and {}", config.num_heads, config.width);
  return config;
}

// Projections that end in the residual stream start smaller, so that its variance does not grow
// with depth.
double output_std(const Gpt2Config& config) {
  return config.init_std / std::sqrt(2.0 * static_cast<double>(config.num_layers));
}

}  // namespace

// A segment takes the residual stream, its norm and the random state, and gives the first two for
// the next layer. Each residual addition is fused with the norm that reads it: ln_2 of the block,
// then ln_1 of the next one or ln_f.
class Gpt2::Block : public Module, public Segment {
 public:
  Block(Module& parent, std::string_view name, const Gpt2Config& config)
      : Module(parent, name),
        ln_1(*this, "ln_1", config.width, config.bias, config.layer_norm_epsilon),
        attn(*this, "attn",
             {.width = config.width,
              .num_heads = config.num_heads,
              .bias = config.bias,
              .dropout = config.dropout,
              .init_std = config.init_std,
              .output_std = output_std(config)}),
        ln_2(*this, "ln_2", config.width, config.bias, config.layer_norm_epsilon),
        mlp(*this, "mlp",
            {.width = config.width,
             .bias = config.bias,
             .activation = config.activation,
             .dropout = config.dropout,
             .init_std = config.init_std,
             .output_std = output_std(config)}) {}

  TensorList run_segment(std::span<const Tensor> inputs) const override {
    const Tensor &x = inputs[0], &normed = inputs[1], &random = inputs[2];
    auto attended = ln_2.forward_residual(x, attn.forward(normed, random));
    auto fed = next_norm->forward_residual(attended.sum, mlp.forward(attended.normed, random));
    return {std::move(fed.sum), std::move(fed.normed)};
  }

  const LayerNorm* next_norm = nullptr;
  LayerNorm ln_1;
  CausalSelfAttention attn;
  LayerNorm ln_2;
  Mlp mlp;
};

Gpt2::Gpt2(const Gpt2Config& config)
    : Module(""),
      config_(checked(config)),
      wte_(*this, "wte", config.vocabulary_size, config.width, config.init_std),
      wpe_(*this, "wpe", config.context_length, config.width, config.init_std),
      dropout_(*this, "dropout", config.dropout),
      layers_([&] {
        std::vector<std::unique_ptr<Block>> layers;
        for (int64_t i = 0; i < config.num_layers; ++i)
          layers.push_back(std::make_unique<Block>(*this, "layers." + std::to_string(i), config));
        return layers;
      }()),
      ln_f_(*this, "ln_f", config.width, config.bias, config.layer_norm_epsilon) {
  if (!config.tied_head)
    lm_head_.emplace(*this, "lm_head", config.width, config.vocabulary_size, false,
                     config.init_std);
  for (size_t i = 0; i < layers_.size(); ++i)
    layers_[i]->next_norm = i + 1 < layers_.size() ? &layers_[i + 1]->ln_1 : &ln_f_;
}

Gpt2::~Gpt2() = default;

const Tensor& Gpt2::head() const { return lm_head_ ? lm_head_->weight() : wte_.weight(); }

Tensor Gpt2::hidden(const Tensor& ids_BT, const Tensor& random) const {
  OBELISK_CHECK(
      ids_BT.num_dims() == 2 && could_be_ordered(ids_BT.dims()[1], config_.context_length),
      ShapeError,
      "gpt2: ids must be [B, T] with T at most context_length; got {}, context_length {}",
      to_string(ids_BT.dims()), config_.context_length);
  Tensor x = dropout_.forward(wpe_.add_positions(wte_.forward(ids_BT)), random);
  Tensor normed = layers_.front()->ln_1.forward(x);
  const SelectiveRecomputeScope selective(recompute_ == Recompute::Selective);
  for (const auto& layer : layers_) {
    const Tensor inputs[] = {x, normed, random};
    TensorList outputs =
        recompute_ == Recompute::Full ? recompute(*layer, inputs) : layer->run_segment(inputs);
    x = std::move(outputs[0]);
    normed = std::move(outputs[1]);
  }
  return normed;
}

Tensor Gpt2::loss_sum(const Tensor& ids_BT, const Tensor& targets_BT, const Tensor& random) const {
  OBELISK_CHECK(ids_BT.dims() == targets_BT.dims(), ShapeError,
                "gpt2: targets must have the shape of ids; got {} and {}",
                to_string(targets_BT.dims()), to_string(ids_BT.dims()));
  const Tensor x_BTD = hidden(ids_BT, random);
  const Dim num_tokens = product(ids_BT.dims());
  static const std::string kHead = "head";
  PathScope scope(kHead);
  return ops::linear_cross_entropy(ops::reshape(x_BTD, {num_tokens, config_.width}), head(),
                                   ops::reshape(targets_BT, DimShape{num_tokens}));
}

Tensor Gpt2::next_logits(const Tensor& ids_BT) const {
  const Tensor x_BTD = hidden(ids_BT, Tensor());
  const Dim t = ids_BT.dims()[1];
  const Tensor last_BD = ops::reshape(ops::contiguous(ops::slice(x_BTD, 1, t - 1, t)),
                                      {ids_BT.dims()[0], config_.width});
  const Tensor logits_BV = ops::linear(last_BD, head(), Tensor());
  return ops::cast(logits_BV, sum_dtype(logits_BV.dtype()));
}

double Gpt2::count_parameters(const Gpt2Config& config) {
  const auto d = static_cast<double>(config.width);
  const auto v = static_cast<double>(config.vocabulary_size);
  const double biases = config.bias ? 1 : 0;
  const double norm = d + biases * d;
  // qkv 3 D D, proj D D, up and down 4 D D each, with their biases.
  const double layer = 12 * d * d + biases * 9 * d + 2 * norm;
  const double head = config.tied_head ? 0 : v * d;
  return v * d + static_cast<double>(config.context_length) * d +
         static_cast<double>(config.num_layers) * layer + norm + head;
}

double Gpt2::training_flops_per_token(const Gpt2Config& config, int64_t sequence_length) {
  const auto d = static_cast<double>(config.width);
  const auto layers = static_cast<double>(config.num_layers);
  const double products = layers * 12.0 * d * d + d * static_cast<double>(config.vocabulary_size);
  return 6.0 * products + 6.0 * layers * d * static_cast<double>(sequence_length);
}

}  // namespace obelisk::parallel
