// A training step under a stopwatch, driven line by line so that a script can alternate it with
// another program:
//
//   bench_step LAYERS HEADS WIDTH VOCABULARY CONTEXT BIAS(0|1) GELU(erf|tanh) B T PRECISION
//       RECOMPUTE(none|selective|full) THREADS
//
//   run N   N steps; answers with one JSON line: seconds, loss of the last, phases
//   quit    answers with parameters, flops a step, peak resident bytes and what of them is tensors,
//           and ends
//
// The batches are random tokens, the same each step: the time of a step does not depend on them.
#include <fmt/core.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "framework/tensor/philox.h"
#include "parallel/tasks/pretrain.h"

namespace obelisk::bench {
namespace {

struct Arguments {
  parallel::Gpt2Config model;
  parallel::PretrainOptions options;
  int threads = 1;
};

Arguments parse(char** argv) {
  auto number = [&](int i) { return std::stoll(argv[i]); };
  Arguments a;
  a.model = {
      .vocabulary_size = number(4),
      .context_length = number(5),
      .num_layers = number(1),
      .num_heads = number(2),
      .width = number(3),
      .bias = number(6) != 0,
      .activation = std::strcmp(argv[7], "erf") == 0 ? ops::GeluForm::Erf : ops::GeluForm::Tanh};
  a.options.sequences = number(8);
  a.options.sequence_length = number(9);
  const std::string precision = argv[10];
  a.options.dtype = precision == "f64"    ? DType::F64
                    : precision == "bf16" ? DType::BF16
                                          : DType::F32;
  OBELISK_CHECK(precision == to_string(a.options.dtype), ValueError,
                "bench_step: precision must be f32, bf16 or f64; got {}", precision);
  a.options.schedule = {.kind = parallel::ScheduleKind::Constant, .peak_lr = 1e-4};
  using parallel::Recompute;
  const std::string recompute = argv[11];
  a.options.recompute = recompute == "none"   ? Recompute::None
                        : recompute == "full" ? Recompute::Full
                                              : Recompute::Selective;
  a.threads = static_cast<int>(number(12));
  return a;
}

TextData random_data(int64_t vocabulary_size, int64_t count) {
  const Philox random(1, random_stream("bench", "tokens"), 0);
  TextData data;
  for (int64_t i = 0; i < count; ++i)
    data.train.push_back(static_cast<int32_t>(random.bits(static_cast<uint64_t>(i)) %
                                              static_cast<uint64_t>(vocabulary_size)));
  data.validation = data.train;
  return data;
}

// Peak resident memory, bytes.
int64_t peak_resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

int run(char** argv) {
  Arguments a = parse(argv);
  ExecContext context({.num_threads = a.threads});
  ExecScope scope(context);
  const parallel::ProcessMesh mesh({.dp = 1}, parallel::self_communicator());
  parallel::PretrainTask task(
      a.model, a.options, make_byte_tokenizer(),
      random_data(a.model.vocabulary_size, 4 * a.options.sequence_length + 1), mesh);
  int64_t index = 0;
  for (std::string word; std::cin >> word && word == "run";) {
    int64_t steps = 0;
    std::cin >> steps;
    StepResult last;
    PhaseSeconds phases;
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < steps; ++i) {
      last = task.step(index++);
      for (const auto& [name, phase] : kPhases) phases.*phase += last.phases.*phase;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    fmt::print("{{\"seconds\":{:.6f},\"loss\":{:.5f}", seconds.count(), last.loss);
    for (const auto& [name, phase] : kPhases) fmt::print(",\"{}\":{:.6f}", name, phases.*phase);
    fmt::print("}}\n");
    std::fflush(stdout);
  }
  const double flops =
      parallel::Gpt2::training_flops_per_token(a.model, a.options.sequence_length) *
      static_cast<double>(a.options.sequences * a.options.sequence_length);
  const AllocatorStats memory = context.allocator()->stats();
  fmt::print(
      "{{\"parameters\":{:.0f},\"flops\":{:.0f},\"peak_bytes\":{},\"tensor_peak_bytes\":{},"
      "\"tensor_reserved_bytes\":{}}}\n",
      parallel::Gpt2::count_parameters(a.model), flops, peak_resident(), memory.peak_bytes_in_use,
      memory.bytes_reserved);
  return 0;
}

}  // namespace
}  // namespace obelisk::bench

int main(int argc, char** argv) {
  if (argc != 13) {
    fmt::print(stderr,
               "bench_step: expects LAYERS HEADS WIDTH VOCABULARY CONTEXT BIAS GELU B T PRECISION "
               "RECOMPUTE THREADS\n");
    return 2;
  }
  try {
    return obelisk::bench::run(argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_step: {}\n", error.what());
    return 1;
  }
}
