// Softmax cross-entropy from logits, summed over the rows that count.
//
//   loss = sum over rows n with target t >= 0 of  log sum_v exp(x[n, v]) - x[n, t]
//   dx[n, v] = g (softmax(x[n])[v] - [v == t]),  0 in rows with target -1
//
// Written with m = max_v x and s = sum_v exp(x - m), so that large logits are safe. A sum, not a
// mean: whoever knows the global number of targets divides by it.
#pragma once

#include "framework/op/op_def.h"

namespace obelisk::ops {

// (logits [N, V], targets i64 [N]) -> loss [], hidden m [N] and s [N]. f32, bf16 or f64; of bf16
// logits the outputs and the gradient g that comes back are f32.
//
// Target -1 leaves a row out. Throws ShapeError when shapes do not fit, ValueError for a target
// outside [-1, V).
extern const OpDef kCrossEntropy;

// (logits, targets, m, s, g []) -> dlogits [N, V].
extern const OpDef kCrossEntropyBackward;

Tensor cross_entropy(const Tensor& logits, const Tensor& targets);

// Throws ValueError, with the position, for a target outside [-1, vocabulary).
void check_targets(const char* op, const Tensor& targets, int64_t vocabulary);

// The vector kernels, named by the definitions above.
void cross_entropy_cpu(const KernelArgs& args);
void cross_entropy_backward_cpu(const KernelArgs& args);

// Rows of logits in memory, for kernels that make them themselves. Fills losses[i] (0 for target
// -1) for i in [0, rows), and `gradients`, unless null, with the rows' gradients for an upstream
// gradient of one; they may be the logits themselves. T and G are float, double, or float and
// BFloat16.
template <typename T, typename G>
void softmax_loss_rows(const T* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                       G* gradients, double* losses);

}  // namespace obelisk::ops
