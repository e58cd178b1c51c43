// What attention's definition and its kernels share; not for users of the op.
#pragma once

#include "ops/attention/attention.h"

namespace obelisk::ops {

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
