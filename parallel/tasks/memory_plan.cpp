#include "parallel/tasks/memory_plan.h"

namespace obelisk::parallel {
namespace {

// A layer's modules, parameters and paths on the heap.
constexpr double kBytesOfLayerObjects = 2048;

double activation_bytes(const Gpt2Config& model, const PretrainOptions& options, int64_t dp) {
  const auto share = static_cast<double>(options.sequences) / static_cast<double>(dp);
  const double sequences =
      options.micro_batch_size > 0 ? static_cast<double>(options.micro_batch_size) : share;
  const auto element = static_cast<double>(size_of(options.dtype));
  const double statistics = options.dtype == DType::F64 ? 8 : 4;
  const auto layers = static_cast<double>(model.num_layers);
  const auto width = static_cast<double>(model.width);
  const double widths = options.recompute == Recompute::Selective ? 12 : 16;
  const double of_layer =
      widths * width * element + static_cast<double>(model.num_heads) * statistics;
  const double of_layers = options.recompute == Recompute::Full
                               ? (layers - 1) * 2 * width * element + of_layer
                               : layers * of_layer;
  // The first residual sum and the last norm; ids and targets are i64.
  const double a_token = of_layers + 2 * width * element + 2 * sizeof(int64_t);
  return sequences * static_cast<double>(options.sequence_length) * a_token;
}

}  // namespace

MemoryPlan plan_memory(const Gpt2Config& model, const PretrainOptions& options, int64_t dp,
                       int64_t num_tokens) {
  const double master = options.dtype == DType::F64 ? 8 : 4;
  const double copy = options.dtype == DType::BF16 ? 2 : 0;
  MemoryPlan plan;
  plan.parameters = Gpt2::count_parameters(model);
  plan.weights = plan.parameters * (master + copy);
  plan.gradients = plan.parameters * master;
  plan.moments = 2 * plan.parameters * master;
  plan.activations = activation_bytes(model, options, dp);
  plan.program = static_cast<double>(model.num_layers) * kBytesOfLayerObjects +
                 static_cast<double>(num_tokens) * sizeof(int32_t);
  return plan;
}

}  // namespace obelisk::parallel
