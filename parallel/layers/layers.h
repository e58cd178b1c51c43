// Layers of a transformer. Each has a typed forward; all parameters are declared in the constructor
// and get memory from FlatParameters.
//
// B: sequences, T: positions, D: model width, F: output features, H: heads, V: vocabulary.
#pragma once

#include <memory>
#include <optional>

#include "framework/module/module.h"
#include "ops/gelu/gelu.h"

namespace obelisk::parallel {

// y = x w^T + b, w [F, D], output-major.
class Linear : public Module {
 public:
  Linear(Module& parent, std::string_view name, int64_t in_features, int64_t out_features,
         bool bias, double init_std);
  Tensor forward(const Tensor& x) const;  // [..., D] -> [..., F]
  const Tensor& weight() const { return weight_.value(); }

 private:
  Parameter weight_;
  std::optional<Parameter> bias_;
};

class LayerNorm : public Module {
 public:
  LayerNorm(Module& parent, std::string_view name, int64_t width, bool bias, double epsilon);
  Tensor forward(const Tensor& x) const;  // [..., D] -> [..., D]

  struct Residual {
    Tensor normed;  // the layer norm of `sum`
    Tensor sum;     // x + branch: the residual stream
  };
  // The residual connection and the norm that follows it, as one op.
  Residual forward_residual(const Tensor& x, const Tensor& branch) const;

 private:
  Tensor bias() const { return bias_ ? bias_->value() : Tensor(); }
  Parameter weight_;
  std::optional<Parameter> bias_;
  double epsilon_;
};

// Drops activations while training: one stream a module path, the mask a function of the global
// sample.
class Dropout {
 public:
  Dropout(const Module& owner, std::string_view role, double probability);
  // random: I64 [3] = {seed, step, first sample}; undefined outside training, which returns x.
  Tensor forward(const Tensor& x, const Tensor& random) const;

 private:
  double probability_;
  uint64_t stream_;
};

// Token embedding plus learned positions.
class Embedding : public Module {
 public:
  Embedding(Module& parent, std::string_view name, int64_t count, int64_t width, double init_std);
  Tensor forward(const Tensor& ids) const;          // I64 [...] -> [..., D]
  Tensor add_positions(const Tensor& x_BTD) const;  // x + the first T rows
  const Tensor& weight() const { return weight_.value(); }

 private:
  Parameter weight_;
};

struct AttentionOptions {
  int64_t width = 0;
  int64_t num_heads = 0;
  bool bias = true;
  double dropout = 0;      // of the output projection
  double init_std = 0.02;  // of the input projection
  double output_std = 0.02;
};

class CausalSelfAttention : public Module {
 public:
  CausalSelfAttention(Module& parent, std::string_view name, const AttentionOptions& options);
  Tensor forward(const Tensor& x_BTD, const Tensor& random) const;

 private:
  int64_t width_;
  int64_t num_heads_;
  Linear qkv_;
  Linear proj_;
  Dropout dropout_;
};

struct MlpOptions {
  int64_t width = 0;
  bool bias = true;
  ops::GeluForm activation = ops::GeluForm::Tanh;
  double dropout = 0;
  double init_std = 0.02;
  double output_std = 0.02;
};

// down(gelu(up(x))), four times as wide inside.
class Mlp : public Module {
 public:
  Mlp(Module& parent, std::string_view name, const MlpOptions& options);
  Tensor forward(const Tensor& x_BTD, const Tensor& random) const;

 private:
  ops::GeluForm activation_;
  Linear up_;
  Linear down_;
  Dropout dropout_;
};

}  // namespace obelisk::parallel
