// Softmax attention over heads, and its gradient, without ever holding a T x S matrix.
//
//   o[b, t, h] = sum_s p[b, h, t, s] v[b, s, h'],   p = softmax_s(scale * <q[b, t, h], k[b, s,
//   h']>) lse[b, h, t] = log sum_s exp(scale * <q, k>)
//
// B batch, T queries, S keys, H heads, KV heads of keys and values, D width of a head. Head h reads
// h' = h / (H / KV) (grouped-query attention). Causal: query t sees the keys s <= t + S - T, that
// is, the last query sees all. With S = 0, o is 0 and lse is -inf.
//
// Backward (Dao et al., FlashAttention, 2022), with p recomputed from lse and g = do:
//   delta[b, h, t] = sum_d g o,   dv[s] = sum_t p g[t],   ds = p * (<g[t], v[s]> - delta[t])
//   dq[t] = scale * sum_s ds k[s],   dk[s] = scale * sum_t ds q[t]
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct AttentionAttrs {
  bool causal = false;
  double scale = 0.0;  // 0: 1 / sqrt(D)
  static constexpr auto fields() {
    return std::tuple{field("causal", &AttentionAttrs::causal),
                      field("scale", &AttentionAttrs::scale)};
  }
};

// (q [B, T, H, D], k [B, S, KV, D], v [B, S, KV, D]) -> o [B, T, H, D], lse [B, H, T].
//
// f32 or f64 alike. q, k and v may be strided in their leading dims (views of one packed
// projection); outputs are contiguous. Saves all five for backward. Throws ShapeError when shapes
// or dtypes do not fit, when KV does not divide H, and when causal with fewer keys than queries.
extern const OpDef kAttention;

// (q, k, v, o, lse, do) -> dq, dk, dv, contiguous, shaped like q, k and v. All but lse may be
// strided like the inputs of attention.
extern const OpDef kAttentionBackward;

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionAttrs& attrs);

// The vector kernels, named by the definitions above.
void attention_cpu(const KernelArgs& args);
void attention_backward_cpu(const KernelArgs& args);

// The rows of a [B, T, H, D] tensor, whose leading dims may be strided.
template <typename T>
struct HeadRows {
  explicit HeadRows(const Tensor& tensor)
      : data(tensor.data<T>()),
        batch_stride(tensor.strides()[0]),
        token_stride(tensor.strides()[1]),
        head_stride(tensor.strides()[2]) {}
  T* row(int64_t b, int64_t t, int64_t h) const {
    return data + b * batch_stride + t * token_stride + h * head_stride;
  }
  T* data;
  int64_t batch_stride, token_stride, head_stride;
};

// What the kernels read off their operands.
struct AttentionSizes {
  AttentionSizes(const Shape& q, const Shape& k, const AttentionAttrs& attrs);

  int64_t batch, queries, keys, heads, kv_heads, width;
  int64_t heads_per_kv;  // 1 when there are no heads
  bool causal;
  double scale;

  // Number of keys that query t sees: the first ones.
  int64_t visible(int64_t t) const { return causal ? t + keys - queries + 1 : keys; }
};

}  // namespace obelisk::ops
