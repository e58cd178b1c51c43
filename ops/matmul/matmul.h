// Matrix products.
//
//   matmul             y [L.., M, N] = op(a) op(b) + bias,   op(x) = x or its transpose
//   matmul_accumulate  destination += op(a) op(b), in place
//   linear             y [.., N] = x w^T + bias
//
// a is [L.., M, K] ([L.., K, M] when transpose_a), b is [L.., K, N] ([L.., N, K] when transpose_b);
// the leading dims L.. are equal, or one operand has none and is used for all of the other's. `a`
// may also be one row [K], and then y is [N]. bias is [N] or absent. With sum_leading the products
// are added over L.., equal for both, and y is [M, N] (a weight's gradient from batched
// activations). K = 0 gives the bias or zeros.
//
// dtypes f32, bf16 and f64, alike; matmul_accumulate also adds products of bf16 to an f32
// destination. Sums of bf16 products are f32, rounded once. a and b may be strided in all dims but
// the last. Sums run over k in blocks of 256, each a chain of fused multiply-adds; bits do not
// depend on the number of threads (gemm.h).
//
// Gradients, g that of y, here without transposes: da = g b^T, db = a^T g, summed over the leading
// dims an operand lacks; dbias = sum of g over all dims but the last. They add straight into the
// gradient buffer of a leaf that has one.
//
// Errors (ShapeError): "matmul: inner dims of a and b must be equal; got ...", "matmul: leading
// dims of a and b must be equal, or one of them has none; ...", "matmul: bias must be as long as
// the last dim of the result; ...", "matmul_accumulate: destination must have the shape of the
// product;
// ...".
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

struct MatmulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  bool sum_leading = false;
  static constexpr auto fields() {
    return std::tuple{field("transpose_a", &MatmulAttrs::transpose_a),
                      field("transpose_b", &MatmulAttrs::transpose_b),
                      field("sum_leading", &MatmulAttrs::sum_leading)};
  }
};

extern const OpDef kMatmul;            // inputs a, b, bias or absent; MatmulAttrs
extern const OpDef kMatmulAccumulate;  // inputs destination (written), a, b; MatmulAttrs; no output

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulAttrs& attrs = {},
              const Tensor& bias = {});
void matmul_accumulate(const Tensor& destination, const Tensor& a, const Tensor& b,
                       const MatmulAttrs& attrs = {});

// x [.., K], w [N, K] (a row an output feature), bias [N] or absent -> [.., N].
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias);

// The vector kernels, named by the definitions above.
void matmul_cpu(const KernelArgs& args);
void matmul_accumulate_cpu(const KernelArgs& args);

}  // namespace obelisk::ops
