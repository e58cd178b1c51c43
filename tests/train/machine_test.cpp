#include "framework/base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/utsname.h>

#include "tests/train/temp_folder.h"

namespace obelisk {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// A machine of 8 GiB, 6 GiB available, without control groups.
class Machine : public testing::Test {
 protected:
  void SetUp() override {
    put("/proc/meminfo",
        "MemTotal:        8388608 kB\nMemFree: 1 kB\nMemAvailable:    6291456 kB\n");
    cpu("fpu sse2 avx avx2 fma");
    put("/proc/self/cgroup", "");
  }
  void put(const std::string& path, const std::string& text) {
    write_text(root_.path() + path, text);
  }
  void cpu(const std::string& flags) {
    put("/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Test CPU @ 3 GHz\nflags\t\t: " + flags + "\n");
  }
  MachineInfo info() const { return machine_info(root_.path()); }

  TempFolder root_;
};

TEST_F(Machine, ThisOneHasAllFacts) {
  const MachineInfo real = machine_info();
  EXPECT_FALSE(real.hostname.empty());
  EXPECT_FALSE(real.kernel.empty());
  EXPECT_FALSE(real.cpu_model.empty());
  EXPECT_FALSE(real.isa.empty());
  EXPECT_GE(real.cores, 1);
  EXPECT_GT(real.memory_total, 0);
  EXPECT_GT(real.memory_available, 0);
  EXPECT_LE(real.memory_available, real.memory_total);
}

TEST_F(Machine, ReadsProc) {
  EXPECT_EQ(info().cpu_model, "Test CPU @ 3 GHz");
  EXPECT_EQ(info().memory_total, 8 * kGiB);
  EXPECT_EQ(info().memory_available, 6 * kGiB);
}

TEST_F(Machine, MissingFilesAreUnknown) {
  const TempFolder empty;
  const MachineInfo nothing = machine_info(empty.path());
  EXPECT_EQ(nothing.cpu_model, "unknown");
  EXPECT_EQ(nothing.memory_total, 0);
  EXPECT_EQ(nothing.memory_available, 0);
  EXPECT_GE(nothing.cores, 1);
}

TEST_F(Machine, CoresFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &before)) continue;
    CPU_SET(i, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(info().cores, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(info().cores, CPU_COUNT(&before));
}

TEST_F(Machine, CpuQuotaCutsCores) {
  put("/proc/self/cgroup", "0::/box\n");
  put("/sys/fs/cgroup/box/cpu.max", "50000 100000\n");
  EXPECT_EQ(info().cores, 1);
  put("/sys/fs/cgroup/box/cpu.max", "max 100000\n");
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  EXPECT_EQ(info().cores, CPU_COUNT(&mask));
  put("/proc/self/cgroup", "3:cpu,cpuacct:/box\n");
  put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "20000\n");
  put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(info().cores, 1);
  put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(info().cores, CPU_COUNT(&mask));
}

TEST_F(Machine, CgroupV2LimitsMemory) {
  put("/proc/self/cgroup", "0::/outer/inner\n");
  put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  put("/sys/fs/cgroup/outer/memory.max", std::to_string(2 * kGiB) + "\n");
  put("/sys/fs/cgroup/outer/memory.current", std::to_string(kGiB) + "\n");
  put("/sys/fs/cgroup/outer/memory.stat",
      "anon 1\ninactive_file " + std::to_string(kGiB / 2) + "\n");
  EXPECT_EQ(info().memory_total, 2 * kGiB);
  EXPECT_EQ(info().memory_available, 3 * kGiB / 2);
}

TEST_F(Machine, CgroupV2InsideAContainerReadsTheMountPoint) {
  put("/proc/self/cgroup", "0::/docker/0123\n");
  put("/sys/fs/cgroup/memory.max", std::to_string(kGiB) + "\n");
  EXPECT_EQ(info().memory_total, kGiB);
}

TEST_F(Machine, CgroupV1LimitsMemory) {
  put("/proc/self/cgroup", "5:devices:/\n4:memory:/box\n0::/\n");
  put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(3 * kGiB) + "\n");
  put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(4 * kGiB) + "\n");
  EXPECT_EQ(info().memory_total, 3 * kGiB);
  EXPECT_EQ(info().memory_available, 0) << "usage above the limit leaves nothing, not less";
}

TEST_F(Machine, NoLimitIsNotALimit) {
  put("/proc/self/cgroup", "4:memory:/box\n");
  put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(info().memory_total, 8 * kGiB);
  EXPECT_EQ(info().memory_available, 6 * kGiB);
}

TEST_F(Machine, IsaLevels) {
  utsname system{};
  uname(&system);
  if (std::string(system.machine) != "x86_64") {
    EXPECT_EQ(info().isa, system.machine);
    return;
  }
  const std::string avx512 = "avx2 fma avx512f avx512bw avx512dq avx512vl avx512cd";
  cpu("fpu sse2");
  EXPECT_EQ(info().isa, "x86-64");
  cpu("avx2");
  EXPECT_EQ(info().isa, "x86-64") << "avx2 without fma is below the level";
  cpu("avx2 fma");
  EXPECT_EQ(info().isa, "avx2");
  cpu("avx2 fma avx512f");
  EXPECT_EQ(info().isa, "avx2") << "avx512f alone is below the level";
  cpu(avx512);
  EXPECT_EQ(info().isa, "avx512");
  cpu(avx512 + " avx512_bf16");
  EXPECT_EQ(info().isa, "avx512_bf16");
  cpu(avx512 + " avx512_bf16 amx_bf16 amx_tile");
  EXPECT_EQ(info().isa, "amx_bf16");
}

}  // namespace
}  // namespace obelisk
