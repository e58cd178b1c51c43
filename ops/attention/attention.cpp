#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/kernels.h"

namespace obelisk::ops {
namespace {

void check_operands(const InferArgs& args) {
  args.require_same_float({0, 1, 2});
  const DimShape& q = args.shape(0);
  const DimShape& k = args.shape(1);
  args.require(q.size() == 4, "q must be [B, T, H, D]");
  args.require(k.size() == 4, "k must be [B, S, KV, D]");
  args.require(k == args.shape(2), "k and v must have the same shape");
  args.require(q[0] == k[0], "q and k must have the same batch");
  args.require(q[3] == k[3], "q and k must have the same last dim");
  const Dim heads = q[2], kv_heads = k[2];
  args.require(
      heads == kv_heads || (heads.is_number() && kv_heads.is_number() && kv_heads.number() > 0 &&
                            heads.number() % kv_heads.number() == 0),
      "heads of k must divide heads of q");
  // Two symbols cannot be compared before they are bound; the kernel's own numbers are.
  const bool fewer_keys = q[1].is_number() && k[1].is_number() && k[1].number() < q[1].number();
  args.require(!args.attrs.as<AttentionAttrs>().causal || !fewer_keys,
               "causal attention needs at least as many keys as queries");
}

void infer(const InferArgs& args) {
  check_operands(args);
  const DimShape& q = args.shape(0);
  args.add_output(q, args.inputs[0].dtype);
  args.add_output({q[0], q[2], q[1]}, sum_dtype(args.inputs[0].dtype));
}

void infer_backward(const InferArgs& args) {
  check_operands(args);
  args.require_same_float({0, 1, 2, 3, 5});
  args.require_sums({4}, 0);
  const DimShape& q = args.shape(0);
  args.require(args.shape(3) == q && args.shape(5) == q, "o and do must be shaped like q");
  args.require(args.shape(4) == DimShape{q[0], q[2], q[1]}, "lse must be [B, H, T]");
  for (int i = 0; i < 3; ++i) args.add_output(args.shape(i), args.inputs[i].dtype);
}

template <typename T>
void reference(const KernelArgs& args) {
  const AttentionSizes n(args.inputs[0].shape(), args.inputs[1].shape(),
                         args.attrs.as<AttentionAttrs>());
  const HeadRows<T> q(args.inputs[0]), k(args.inputs[1]), v(args.inputs[2]), o(args.outputs[0]);
  T* lse = args.outputs[1].data<T>();
  Workspace<double> scores(args.context, n.keys);
  for (int64_t b = 0; b < n.batch; ++b)
    for (int64_t h = 0; h < n.heads; ++h)
      for (int64_t t = 0; t < n.queries; ++t) {
        const int64_t kv = h / n.heads_per_kv;
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t s = 0; s < n.visible(t); ++s) {
          double dot = 0;
          for (int64_t d = 0; d < n.width; ++d)
            dot += double(q.row(b, t, h)[d]) * double(k.row(b, s, kv)[d]);
          scores[s] = n.scale * dot;
          largest = std::max(largest, scores[s]);
        }
        for (int64_t s = 0; s < n.visible(t); ++s) {
          scores[s] = std::exp(scores[s] - largest);
          sum += scores[s];
        }
        for (int64_t d = 0; d < n.width; ++d) {
          double weighted = 0;
          for (int64_t s = 0; s < n.visible(t); ++s)
            weighted += scores[s] * double(v.row(b, s, kv)[d]);
          o.row(b, t, h)[d] = static_cast<T>(n.keys > 0 ? weighted / sum : 0.0);
        }
        lse[(b * n.heads + h) * n.queries + t] = static_cast<T>(largest + std::log(sum));
      }
}

template <typename T>
void reference_backward(const KernelArgs& args) {
  const AttentionSizes n(args.inputs[0].shape(), args.inputs[1].shape(),
                         args.attrs.as<AttentionAttrs>());
  const HeadRows<T> q(args.inputs[0]), k(args.inputs[1]), v(args.inputs[2]), o(args.inputs[3]),
      g(args.inputs[5]), dq(args.outputs[0]), dk(args.outputs[1]), dv(args.outputs[2]);
  const T* lse = args.inputs[4].data<T>();
  Workspace<double> sums(args.context, n.width + 2 * n.keys * n.width);
  double* const dq_row = sums.data();
  double* const dk_sum = dq_row + n.width;
  double* const dv_sum = dk_sum + n.keys * n.width;
  auto add_query = [&](int64_t b, int64_t kv, int64_t h, int64_t t) {
    std::fill_n(dq_row, n.width, 0.0);
    double delta = 0;
    for (int64_t d = 0; d < n.width; ++d)
      delta += double(g.row(b, t, h)[d]) * double(o.row(b, t, h)[d]);
    for (int64_t s = 0; s < n.visible(t); ++s) {
      double dot = 0, dp = 0;
      for (int64_t d = 0; d < n.width; ++d) {
        dot += double(q.row(b, t, h)[d]) * double(k.row(b, s, kv)[d]);
        dp += double(g.row(b, t, h)[d]) * double(v.row(b, s, kv)[d]);
      }
      const double p = std::exp(n.scale * dot - double(lse[(b * n.heads + h) * n.queries + t]));
      const double ds = n.scale * p * (dp - delta);
      for (int64_t d = 0; d < n.width; ++d) {
        dq_row[d] += ds * double(k.row(b, s, kv)[d]);
        dk_sum[s * n.width + d] += ds * double(q.row(b, t, h)[d]);
        dv_sum[s * n.width + d] += p * double(g.row(b, t, h)[d]);
      }
    }
    for (int64_t d = 0; d < n.width; ++d) dq.row(b, t, h)[d] = static_cast<T>(dq_row[d]);
  };
  for (int64_t b = 0; b < n.batch; ++b)
    for (int64_t kv = 0; kv < n.kv_heads; ++kv) {
      std::fill_n(dk_sum, 2 * n.keys * n.width, 0.0);
      for (int64_t h = kv * n.heads_per_kv; h < (kv + 1) * n.heads_per_kv; ++h)
        for (int64_t t = 0; t < n.queries; ++t) add_query(b, kv, h, t);
      for (int64_t s = 0; s < n.keys; ++s)
        for (int64_t d = 0; d < n.width; ++d) {
          dk.row(b, s, kv)[d] = static_cast<T>(dk_sum[s * n.width + d]);
          dv.row(b, s, kv)[d] = static_cast<T>(dv_sum[s * n.width + d]);
        }
    }
}

void attention_reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "attention", [&]<typename T>() { reference<T>(args); });
}
void attention_backward_reference(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "attention_backward",
                [&]<typename T>() { reference_backward<T>(args); });
}

void backward(const BackwardArgs& args) {
  const Tensor& g = args.grad_outputs[0];
  OBELISK_CHECK(!args.grad_outputs[1].defined(), Bug,
                "bug: attention: lse has no gradient; it is kept for backward only");
  const TensorList grads =
      apply(kAttentionBackward,
            {args.inputs[0], args.inputs[1], args.inputs[2], args.outputs[0], args.outputs[1], g},
            args.attrs);
  for (int i = 0; i < 3; ++i)
    if (args.needs(i)) args.grad_inputs[i] = grads[i];
}

// Pairs of query and key that are computed.
double num_pairs(const AttentionSizes& n) {
  const double all = static_cast<double>(n.queries) * static_cast<double>(n.keys);
  const double hidden =
      n.causal ? 0.5 * static_cast<double>(n.queries) * static_cast<double>(n.queries - 1) : 0.0;
  return static_cast<double>(n.batch * n.heads) * (all - hidden);
}

// Multiplications and additions of `products` matrix products over the visible pairs.
template <int kProducts>
Cost attention_cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                    const Attrs& attrs) {
  const AttentionSizes n(to_numbers(inputs[0].shape), to_numbers(inputs[1].shape),
                         attrs.as<AttentionAttrs>());
  return {kProducts * 2.0 * static_cast<double>(n.width) * num_pairs(n), bytes_of(inputs),
          bytes_of(outputs)};
}

constexpr const char* kInputNames[] = {"q", "k", "v"};
constexpr const char* kBackwardInputNames[] = {"q", "k", "v", "o", "lse", "do"};

}  // namespace

AttentionSizes::AttentionSizes(const Shape& q, const Shape& k, const AttentionAttrs& attrs)
    : batch(q[0]),
      queries(q[1]),
      keys(k[1]),
      heads(q[2]),
      kv_heads(k[2]),
      width(q[3]),
      heads_per_kv(kv_heads > 0 ? heads / kv_heads : 1),
      causal(attrs.causal),
      scale(attrs.scale) {
  if (scale == 0.0) scale = width > 0 ? 1.0 / std::sqrt(static_cast<double>(width)) : 1.0;
}

const OpDef kAttention = {
    .name = "attention",
    .input_names = kInputNames,
    .infer = infer,
    .parse_attrs = Attrs::parse<AttentionAttrs>,
    .cpu = attention_cpu,
    .reference = attention_reference,
    .backward = backward,
    .saved_inputs = bits(0, 1, 2),
    .saved_outputs = bits(0, 1),
    .strided_inputs = bits(0, 1, 2),
    .cost = attention_cost<2>,
};

const OpDef kAttentionBackward = {
    .name = "attention_backward",
    .input_names = kBackwardInputNames,
    .infer = infer_backward,
    .parse_attrs = Attrs::parse<AttentionAttrs>,
    .cpu = attention_backward_cpu,
    .reference = attention_backward_reference,
    .strided_inputs = bits(0, 1, 2, 3, 5),
    .cost = attention_cost<5>,
};

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionAttrs& attrs) {
  return apply(kAttention, {q, k, v}, attrs)[0];
}

}  // namespace obelisk::ops
