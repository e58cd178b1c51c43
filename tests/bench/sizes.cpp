#include "tests/bench/sizes.h"

#include "ops/attention/attention.h"
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/embedding/embedding.h"
#include "ops/gelu/gelu.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/matmul/matmul.h"
#include "ops/optimizer/optimizer.h"

namespace obelisk::bench {
namespace {

struct Model {
  const char* name;
  int64_t batch, length, width, heads, vocabulary;
  bool bias;
  ops::GeluForm gelu;

  int64_t tokens() const { return batch * length; }
};

constexpr Model kModels[] = {{"char", 12, 64, 128, 4, 65, false, ops::GeluForm::Erf},
                             {"gpt2", 4, 256, 768, 12, 50257, true, ops::GeluForm::Tanh}};

struct Product {
  const char* name;
  int64_t in, out;
};

std::vector<Product> products(const Model& model) {
  const int64_t d = model.width;
  return {{"qkv", d, 3 * d}, {"proj", d, d}, {"up", d, 4 * d}, {"down", 4 * d, d}};
}

// y = x w^T + b; its gradients dx = dy w and dw += dy^T x.
void add_products(std::vector<OpCases>& all, const Model& model) {
  OpCases forward{&ops::kMatmul, {}}, accumulate{&ops::kMatmulAccumulate, {}};
  for (const auto& [name, in, out] : products(model)) {
    const std::string prefix = std::string(model.name) + "_" + name;
    const Operand x = normal({model.tokens(), in}), w = normal({out, in}),
                  dy = normal({model.tokens(), out});
    forward.cases.push_back({.name = prefix,
                             .inputs = {x, w, model.bias ? normal({out}) : absent()},
                             .attrs = ops::MatmulAttrs{.transpose_b = true}});
    forward.cases.push_back(
        {.name = prefix + "_dx", .inputs = {dy, w, absent()}, .attrs = ops::MatmulAttrs{}});
    accumulate.cases.push_back({.name = prefix + "_dw",
                                .inputs = {as_sum(normal({out, in})), dy, x},
                                .attrs = ops::MatmulAttrs{.transpose_a = true}});
  }
  all.push_back(std::move(forward));
  all.push_back(std::move(accumulate));
}

void add_attention(std::vector<OpCases>& all, const std::string& name, int64_t batch,
                   int64_t length, int64_t heads, int64_t width) {
  const Operand x = normal({batch, length, heads, width});
  // Near the true size of lse; the formula does not ask for more.
  const Operand lse = as_sum(normal({batch, heads, length}, 0.1, 6.0));
  const ops::AttentionAttrs causal{.causal = true};
  all.push_back({&ops::kAttention, {{.name = name, .inputs = {x, x, x}, .attrs = causal}}});
  all.push_back({&ops::kAttentionBackward,
                 {{.name = name, .inputs = {x, x, x, x, lse, x}, .attrs = causal}}});
}

void add_rowwise(std::vector<OpCases>& all, const Model& model) {
  const Shape rows{model.tokens(), model.width};
  const Operand x = normal(rows), w = normal({model.width}, 0.1, 1.0);
  const Operand b = model.bias ? normal({model.width}) : absent();
  const Operand mean = as_sum(normal({model.tokens()}, 0.01));
  const Operand rstd = as_sum(positive({model.tokens()}));
  const Operand wide = normal({model.tokens(), 4 * model.width});
  all.push_back({&ops::kLayerNorm,
                 {{.name = model.name, .inputs = {x, w, b}, .attrs = ops::LayerNormAttrs{}}}});
  all.push_back({&ops::kAddLayerNorm,
                 {{.name = model.name, .inputs = {x, x, w, b}, .attrs = ops::LayerNormAttrs{}}}});
  all.push_back({&ops::kLayerNormBackward,
                 {{.name = model.name,
                   .inputs = {x, x, x, w, mean, rstd},
                   .attrs = ops::LayerNormBackwardAttrs{model.bias}}}});
  all.push_back(
      {&ops::kGelu, {{.name = model.name, .inputs = {wide}, .attrs = ops::GeluAttrs{model.gelu}}}});
  all.push_back(
      {&ops::kGeluBackward,
       {{.name = model.name, .inputs = {wide, wide}, .attrs = ops::GeluAttrs{model.gelu}}}});
  all.push_back({&ops::kEmbedding,
                 {{.name = model.name,
                   .inputs = {ids({model.batch, model.length}, model.vocabulary),
                              normal({model.vocabulary, model.width})}}}});
}

void add_head(std::vector<OpCases>& all, const Model& model) {
  all.push_back({&ops::kLinearCrossEntropy,
                 {{.name = model.name,
                   .inputs = {normal({model.tokens(), model.width}),
                              normal({model.vocabulary, model.width}, 0.02),
                              ids({model.tokens()}, model.vocabulary)},
                   .attrs = ops::LinearCrossEntropyAttrs{.with_gradient = true}}}});
}

void add_optimizer(std::vector<OpCases>& all, DType dtype) {
  constexpr int64_t kParameters = 1 << 24;
  const Operand small = as_sum(normal({kParameters}, 0.01));
  const Operand copy = dtype == DType::BF16 ? in_bf16(normal({kParameters})) : absent();
  all.push_back({&ops::kSquaredNorm, {{.name = "16M", .inputs = {small}}}});
  all.push_back({&ops::kAdamW,
                 {{.name = "16M",
                   .inputs = {small, small, as_sum(positive({kParameters}, 0.01)), small,
                              doubles({}, {0.5}), doubles({2}, {1e-4, 100}), copy},
                   .attrs = ops::AdamWAttrs{.weight_decay = 0.1}}}});
}

}  // namespace

std::vector<OpCases> model_sizes(DType dtype) {
  std::vector<OpCases> all;
  for (const Model& model : kModels) {
    add_products(all, model);
    add_attention(all, model.name, model.batch, model.length, model.heads,
                  model.width / model.heads);
    add_rowwise(all, model);
    add_head(all, model);
  }
  add_attention(all, "T1024", 1, 1024, 12, 64);
  add_optimizer(all, dtype);
  return all;
}

}  // namespace obelisk::bench
