// What this process runs on. Read from /proc and the control groups, once, at the start of a run.
#pragma once

#include <cstdint>
#include <string>

namespace obelisk {

struct MachineInfo {
  std::string hostname;
  std::string kernel;     // "Linux 6.1.0-18-amd64"
  std::string cpu_model;  // "AMD EPYC 9654 96-Core Processor", or "unknown"

  // Cores this process may use: its affinity mask, cut to the CPU quota of its control groups
  // (rounded up; `docker run --cpus 2` leaves the mask alone). At least 1.
  int cores = 1;

  // Highest level of vector instructions: amx_bf16, avx512_bf16, avx512, avx2, x86-64; another
  // processor family names itself ("aarch64").
  std::string isa;

  // Bytes. The machine's, or the tightest limit of the control groups (v1 and v2) above us.
  // Available counts page cache that the kernel would give back. 0 where it cannot be read.
  int64_t memory_total = 0;
  int64_t memory_available = 0;
};

// `root` is put in front of /proc and /sys, so that a test can bring its own files.
MachineInfo machine_info(const std::string& root = "");

}  // namespace obelisk
