#include "ops/all.h"

#include "framework/op/full.h"
#include "ops/attention/attention.h"
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/dropout/dropout.h"
#include "ops/elementwise/elementwise.h"
#include "ops/embedding/embedding.h"
#include "ops/gelu/gelu.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/layout/layout.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/matmul/matmul.h"
#include "ops/optimizer/optimizer.h"
#include "ops/reduce/reduce.h"
#include "ops/sample/sample.h"

namespace obelisk::ops {
namespace {

// By folder, in alphabetical order of the folders.
constexpr const OpDef* kAll[] = {
    // framework/op
    &kFull,
    // attention
    &kAttention,
    &kAttentionBackward,
    // dropout
    &kDropout,
    // cross_entropy
    &kCrossEntropy,
    &kCrossEntropyBackward,
    // elementwise
    &kAdd,
    &kSubtract,
    &kMultiply,
    &kDivide,
    &kNegate,
    &kExp,
    &kLog,
    &kSqrt,
    &kRsqrt,
    &kSquare,
    &kTanh,
    &kReciprocal,
    &kAbs,
    &kRelu,
    &kSigmoid,
    &kScale,
    &kAddScalar,
    &kAccumulate,
    &kFill,
    &kSqrtBackward,
    &kRsqrtBackward,
    &kSquareBackward,
    &kTanhBackward,
    &kReciprocalBackward,
    &kAbsBackward,
    &kReluBackward,
    &kSigmoidBackward,
    // embedding
    &kEmbedding,
    &kEmbeddingAccumulate,
    // gelu
    &kGelu,
    &kGeluBackward,
    // layer_norm
    &kLayerNorm,
    &kAddLayerNorm,
    &kLayerNormBackward,
    // linear_cross_entropy
    &kLinearCrossEntropy,
    &kScaledAccumulate,
    // layout
    &kReshape,
    &kSlice,
    &kSplit,
    &kConcat,
    &kCopy,
    &kPermute,
    &kBroadcastTo,
    &kPad,
    &kCast,
    // matmul
    &kMatmul,
    &kMatmulAccumulate,
    // optimizer
    &kSquaredNorm,
    &kClipFactor,
    &kAdamW,
    // reduce
    &kSum,
    &kMean,
    &kMax,
    &kArgmax,
    &kMaxBackward,
    &kShare,
    // sample
    &kSample,
};

}  // namespace

std::span<const OpDef* const> all() { return kAll; }

const OpDef* find(std::string_view name) {
  for (const OpDef* op : kAll)
    if (name == op->name) return op;
  return nullptr;
}

}  // namespace obelisk::ops
