#include "parallel/layers/layers.h"

#include "framework/tensor/philox.h"
#include "ops/attention/attention.h"
#include "ops/dropout/dropout.h"
#include "ops/embedding/embedding.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/layout/layout.h"
#include "ops/matmul/matmul.h"

namespace obelisk::parallel {

Linear::Linear(Module& parent, std::string_view name, int64_t in_features, int64_t out_features,
               bool bias, double init_std)
    : Module(parent, name),
      weight_(*this, "weight", {out_features, in_features}, Initial::normal(init_std)) {
  if (bias) bias_.emplace(*this, "bias", Shape{out_features}, Initial::zeros());
}

Tensor Linear::forward(const Tensor& x) const {
  PathScope scope(path());
  return ops::linear(x, weight_.value(), bias_ ? bias_->value() : Tensor());
}

LayerNorm::LayerNorm(Module& parent, std::string_view name, int64_t width, bool bias,
                     double epsilon)
    : Module(parent, name), weight_(*this, "weight", {width}, Initial::ones()), epsilon_(epsilon) {
  if (bias) bias_.emplace(*this, "bias", Shape{width}, Initial::zeros());
}

Tensor LayerNorm::forward(const Tensor& x) const {
  PathScope scope(path());
  return ops::layer_norm(x, weight_.value(), bias(), epsilon_);
}

LayerNorm::Residual LayerNorm::forward_residual(const Tensor& x, const Tensor& branch) const {
  PathScope scope(path());
  auto [normed, sum] = ops::add_layer_norm(x, branch, weight_.value(), bias(), epsilon_);
  return {std::move(normed), std::move(sum)};
}

Dropout::Dropout(const Module& owner, std::string_view role, double probability)
    : probability_(probability), stream_(random_stream(owner.path(), role)) {}

Tensor Dropout::forward(const Tensor& x, const Tensor& random) const {
  if (probability_ == 0 || !random.defined()) return x;
  return ops::dropout(x, random, probability_, stream_);
}

Embedding::Embedding(Module& parent, std::string_view name, int64_t count, int64_t width,
                     double init_std)
    : Module(parent, name), weight_(*this, "weight", {count, width}, Initial::normal(init_std)) {}

Tensor Embedding::forward(const Tensor& ids) const {
  PathScope scope(path());
  return ops::embedding(ids, weight_.value());
}

Tensor Embedding::add_positions(const Tensor& x_BTD) const {
  PathScope scope(path());
  return ops::add_rows(x_BTD, weight_.value());
}

CausalSelfAttention::CausalSelfAttention(Module& parent, std::string_view name,
                                         const AttentionOptions& options)
    : Module(parent, name),
      width_(options.width),
      num_heads_(options.num_heads),
      qkv_(*this, "qkv", options.width, 3 * options.width, options.bias, options.init_std),
      proj_(*this, "proj", options.width, options.width, options.bias, options.output_std),
      dropout_(*this, "dropout", options.dropout) {}

Tensor CausalSelfAttention::forward(const Tensor& x_BTD, const Tensor& random) const {
  PathScope scope(path());
  const int64_t head_dim = width_ / num_heads_;
  const Tensor qkv_BT3D = qkv_.forward(x_BTD);
  // Views of the packed projection: attention reads rows at any stride.
  const Tensor qkv_BT3HK =
      ops::reshape(qkv_BT3D, {x_BTD.dims()[0], x_BTD.dims()[1], 3 * num_heads_, head_dim});
  const int64_t thirds[] = {num_heads_, num_heads_, num_heads_};
  const TensorList parts = ops::split(qkv_BT3HK, thirds, 2);
  const Tensor mixed_BTHK = ops::attention(parts[0], parts[1], parts[2], {.causal = true});
  return dropout_.forward(proj_.forward(ops::reshape(mixed_BTHK, x_BTD.dims())), random);
}

Mlp::Mlp(Module& parent, std::string_view name, const MlpOptions& options)
    : Module(parent, name),
      activation_(options.activation),
      up_(*this, "up", options.width, 4 * options.width, options.bias, options.init_std),
      down_(*this, "down", 4 * options.width, options.width, options.bias, options.output_std),
      dropout_(*this, "dropout", options.dropout) {}

Tensor Mlp::forward(const Tensor& x_BTD, const Tensor& random) const {
  PathScope scope(path());
  return dropout_.forward(down_.forward(ops::gelu(up_.forward(x_BTD), activation_)), random);
}

}  // namespace obelisk::parallel
