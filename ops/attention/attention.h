// Softmax attention over heads, and its gradient, without ever holding a T x S matrix.
//
//   p[b, h, t] = softmax over s of (scale * <q[b, t, h], k[b, s, h']>)
//   o[b, t, h] = sum_s p[b, h, t, s] v[b, s, h']
//   lse[b, h, t] = log sum_s exp(scale * <q[b, t, h], k[b, s, h']>)
//
// B batch, T queries, S keys, H heads, KV heads of keys and values, D width of a head. Head h reads
// h' = h / (H / KV) (grouped-query attention). Causal: query t sees the keys s <= t + S - T, that
// is, the last query sees all; a key it does not see has p = 0 exactly (which an infinite or NaN v
// still turns into NaN). With S = 0, o is 0 and lse is -inf.
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
// f32, bf16 or f64 alike; lse is f32 for bf16, and so is all arithmetic. q, k and v may be strided
// in their leading dims (views of one packed projection); outputs are contiguous. Saves all five
// for backward. Throws ShapeError when shapes or dtypes do not fit, when KV does not divide H, and
// when causal with fewer keys than queries.
extern const OpDef kAttention;

// (q, k, v, o, lse, do) -> dq, dk, dv, contiguous, shaped like q, k and v. All but lse may be
// strided like the inputs of attention.
extern const OpDef kAttentionBackward;

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionAttrs& attrs);

}  // namespace obelisk::ops
