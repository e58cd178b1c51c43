// The machine's limits, one JSON line: bench_peak [THREADS]
//
//   fma_gflops   f32 fused multiply-adds in registers, all threads
//   bf16_gflops  products of bf16 with f32 sums: the dot instruction's rate, or fma_gflops
//   read_gbs, copy_gbs, adamw_gbs   memory streams over arrays of 256 MiB (copy counts its read and
//                its write; adamw is four reads and three writes)
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "tests/bench/peaks.h"

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  obelisk::ExecContext context({.num_threads = threads});
  const obelisk::ExecScope scope(context);
  const obelisk::bench::Peaks peaks = obelisk::bench::measure_peaks(context);
  fmt::print(
      "{{\"threads\":{},\"fma_gflops\":{:.1f},\"bf16_gflops\":{:.1f},\"read_gbs\":{:.2f},\"copy_"
      "gbs\":{:.2f},"
      "\"adamw_gbs\":{:.2f}}}\n",
      threads, peaks.fma_flops / 1e9, peaks.bf16_flops / 1e9, peaks.read_bytes / 1e9,
      peaks.copy_bytes / 1e9, peaks.adamw_bytes / 1e9);
}
