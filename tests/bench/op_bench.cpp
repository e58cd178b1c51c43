// Every op under Google Benchmark, as a share of what the machine can do:
//
//   op_bench [--threads=N] [--bf16=1] [--stream_mib=256] [--benchmark_filter=REGEX]
//   [--benchmark_out=FILE ...]
//
// Benchmarks are called model/<op>/<size> (tests/bench/sizes.h) and case/<op>/<case>
// (tests/ops/*_cases.h). OpDef::cost gives each its operations and bytes; counters:
//
//   flops, bytes   a second
//   share          of the least time that the peaks of this run allow: the larger of
//                  operations / rate of products and bytes / memory rate (read for ops that write
//                  next to nothing, AdamW's stream for adamw, copy for all others), over the
//                  measured time. Above 1 where operands stay in the caches.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "framework/autograd/node.h"
#include "framework/base/machine.h"
#include "tests/bench/peaks.h"
#include "tests/bench/sizes.h"
#include "tests/ops/op_run.h"

namespace obelisk::bench {
namespace {

Cost cost_of(const OpDef& op, const OpCase& op_case, const TensorList& inputs) {
  if (op.cost == nullptr) return {};  // a view
  SpecList specs, outputs;
  for (const Tensor& input : inputs) specs.push_back(spec_of(input));
  op.infer({op.name, op.input_names, specs, op_case.attrs, outputs});
  return op.cost(specs, outputs, op_case.attrs);
}

double least_seconds(const OpDef& op, const Cost& cost, DType dtype, const Peaks& peaks) {
  double memory = peaks.copy_bytes;
  if (cost.bytes_written < 0.01 * cost.bytes_read) memory = peaks.read_bytes;
  if (std::strcmp(op.name, "adamw") == 0) memory = peaks.adamw_bytes;
  const double flops = dtype == DType::BF16 ? peaks.bf16_flops : peaks.fma_flops;
  return std::max(cost.flops / flops, (cost.bytes_read + cost.bytes_written) / memory);
}

// The operands of the benchmark at work: it is entered several times, and filling them is slow.
class Operands {
 public:
  explicit Operands(DType dtype) : dtype_(dtype) {}
  DType dtype() const { return dtype_; }
  const TensorList& of(const OpCase& op_case) {
    if (&op_case != of_) {
      inputs_.reset();  // before the next are taken
      inputs_ = std::unique_ptr<TensorList>(new TensorList(make_inputs(op_case, dtype_)));
      of_ = &op_case;
    }
    return *inputs_;
  }

 private:
  const DType dtype_;
  const OpCase* of_ = nullptr;
  std::unique_ptr<TensorList> inputs_;
};

void run_case(benchmark::State& state, const OpDef& op, const OpCase& op_case, Operands& operands,
              const Peaks& peaks) {
  const NoGradScope no_grad;
  const TensorList& inputs = operands.of(op_case);
  const Cost cost = cost_of(op, op_case, inputs);
  apply(op, inputs, op_case.attrs);  // takes memory
  for (auto _ : state) benchmark::DoNotOptimize(apply(op, inputs, op_case.attrs));
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["flops"] = benchmark::Counter(cost.flops, rate);
  state.counters["bytes"] = benchmark::Counter(cost.bytes_read + cost.bytes_written, rate);
  state.counters["share"] =
      benchmark::Counter(least_seconds(op, cost, operands.dtype(), peaks), rate);
}

void add_benchmarks(const char* group, const std::vector<OpCases>& list, Operands& operands,
                    const Peaks& peaks) {
  for (const OpCases& cases : list) {
    if (operands.dtype() == DType::BF16 && cases.bf16 == Bf16::None) continue;
    for (const OpCase& op_case : cases.cases)
      benchmark::RegisterBenchmark(
          fmt::format("{}/{}/{}", group, cases.op->name, op_case.name).c_str(),
          [&op = *cases.op, &op_case, &operands, &peaks](benchmark::State& state) {
            run_case(state, op, op_case, operands, peaks);
          })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
  }
}

// Takes --name=N out of the arguments.
int64_t take_option(int& argc, char** argv, std::string_view name, int64_t otherwise) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with(name) || word.substr(name.size(), 1) != "=") continue;
    otherwise = std::max<int64_t>(1, std::atoll(argv[i] + name.size() + 1));
    std::copy(argv + i + 1, argv + argc, argv + i);
    --argc;
    break;
  }
  return otherwise;
}

int run(int argc, char** argv) {
  const auto threads = static_cast<int>(take_option(argc, argv, "--threads", machine_info().cores));
  const int64_t stream_mib = take_option(argc, argv, "--stream_mib", 256);
  const DType dtype = take_option(argc, argv, "--bf16", 0) != 0 ? DType::BF16 : DType::F32;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  ExecContext context({.num_threads = threads});
  const ExecScope scope(context);
  const Peaks peaks = measure_peaks(context, stream_mib);
  const std::vector<OpCases> sizes = model_sizes(dtype);
  Operands operands(dtype);
  add_benchmarks("model", sizes, operands, peaks);
  add_benchmarks("case", all_op_cases(), operands, peaks);
  benchmark::AddCustomContext("threads", std::to_string(threads));
  benchmark::AddCustomContext("dtype", std::string(to_string(dtype)));
  benchmark::AddCustomContext("bf16_gflops", fmt::format("{:.1f}", peaks.bf16_flops / 1e9));
  benchmark::AddCustomContext("fma_gflops", fmt::format("{:.1f}", peaks.fma_flops / 1e9));
  benchmark::AddCustomContext("read_gbs", fmt::format("{:.2f}", peaks.read_bytes / 1e9));
  benchmark::AddCustomContext("copy_gbs", fmt::format("{:.2f}", peaks.copy_bytes / 1e9));
  benchmark::AddCustomContext("adamw_gbs", fmt::format("{:.2f}", peaks.adamw_bytes / 1e9));
  const bool found = benchmark::RunSpecifiedBenchmarks() > 0;
  benchmark::Shutdown();
  return found ? 0 : 1;
}

}  // namespace
}  // namespace obelisk::bench

int main(int argc, char** argv) { return obelisk::bench::run(argc, argv); }
