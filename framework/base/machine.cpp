#include "framework/base/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace obelisk {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The value after "key   :" in a file of such lines; empty when there is none.
std::string field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find_first_not_of(" \t", key.size());
    if (colon == std::string::npos || line[colon] != ':') continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// The first number of a file; nothing for "max", and nothing when the file is missing.
std::optional<int64_t> number(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// The number after a key in a file of "key value" lines.
int64_t stat_value(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string name;
  for (int64_t value = 0; file >> name >> value;) {
    if (name == key) return value;
  }
  return 0;
}

// Our path in the hierarchy of a v1 controller, or in the v2 hierarchy when `controller` is empty.
std::optional<std::string> group_path(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    if (controller.empty()) {
      if (line.compare(0, first, "0") == 0 && second == first + 1) return line.substr(second + 1);
      continue;
    }
    for (std::string name; std::getline(names, name, ',');) {
      if (name == controller) return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

// The folders that may limit us, innermost first. Inside a container the path may be the host's and
// absent here; then the walk ends at the mount point, which is the container's own group.
std::vector<std::string> group_folders(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  while (!path.empty() && path != "/") {
    folders.push_back(mount + path);
    path.erase(path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

struct GroupFiles {
  std::string mount, controller, limit, usage, cache;
};

// Lowers total and available to what one hierarchy of control groups allows.
void apply_memory_limit(const std::string& root, const GroupFiles& files, MachineInfo* info) {
  const auto path = group_path(root, files.controller);
  if (!path) return;
  for (const std::string& folder : group_folders(root + files.mount, *path)) {
    const auto limit = number(folder + "/" + files.limit);
    // v1 writes "no limit" as a number just below 2^63; any limit above the machine's memory is
    // none.
    if (!limit || *limit >= info->memory_total) continue;
    const int64_t usage = number(folder + "/" + files.usage).value_or(0) -
                          stat_value(folder + "/memory.stat", files.cache);
    info->memory_total = *limit;
    info->memory_available =
        std::min(info->memory_available, std::clamp<int64_t>(*limit - usage, 0, *limit));
  }
}

int64_t kilobytes(const std::string& root, std::string_view key) {
  const std::string text = field(root + "/proc/meminfo", key);
  return std::strtoll(text.c_str(), nullptr, 10) * 1024;
}

// CPUs' worth of time that the control groups grant; kNoLimit without a quota.
int64_t cpu_quota(const std::string& root) {
  double quota = std::numeric_limits<double>::infinity();
  if (const auto path = group_path(root, "")) {
    for (const std::string& folder : group_folders(root + "/sys/fs/cgroup", *path)) {
      std::ifstream file(folder + "/cpu.max");
      double limit = 0, period = 0;
      if (file >> limit >> period && period > 0) quota = std::min(quota, limit / period);
    }
  }
  if (const auto path = group_path(root, "cpu")) {
    for (const std::string& folder : group_folders(root + "/sys/fs/cgroup/cpu", *path)) {
      const auto limit = number(folder + "/cpu.cfs_quota_us");
      const auto period = number(folder + "/cpu.cfs_period_us");
      if (limit && period && *limit > 0 && *period > 0)
        quota = std::min(quota, static_cast<double>(*limit) / static_cast<double>(*period));
    }
  }
  return std::isinf(quota) ? kNoLimit : std::max<int64_t>(1, std::ceil(quota));
}

int affinity_cores() {
  // Machines with more than 1024 CPUs refuse the fixed-size set; the mask is grown until it fits.
  for (size_t cpus = 1024; cpus <= (size_t{1} << 20); cpus *= 2) {
    std::vector<cpu_set_t> mask((cpus + CPU_SETSIZE - 1) / CPU_SETSIZE);
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0)
      return std::max(1, CPU_COUNT_S(bytes, mask.data()));
  }
  return 1;
}

// The kernel lists a flag only when it saves the registers too, so the list is what may be used.
std::string isa_level(const std::string& root, const std::string& architecture) {
  if (architecture != "x86_64") return architecture;
  std::istringstream list(field(root + "/proc/cpuinfo", "flags"));
  std::vector<std::string> flags;
  for (std::string flag; list >> flag;) flags.push_back(flag);
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) {
      return std::find(flags.begin(), flags.end(), name) != flags.end();
    });
  };
  const bool avx512 = has({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"});
  if (avx512 && has({"avx512_bf16", "amx_bf16", "amx_tile"})) return "amx_bf16";
  if (avx512 && has({"avx512_bf16"})) return "avx512_bf16";
  if (avx512) return "avx512";
  if (has({"avx2", "fma"})) return "avx2";
  return "x86-64";
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

}  // namespace

MachineInfo machine_info(const std::string& root) {
  MachineInfo info;
  info.hostname = host_name();
  utsname system{};
  uname(&system);
  info.kernel = std::string(system.sysname) + " " + system.release;
  info.cpu_model = field(root + "/proc/cpuinfo", "model name");
  if (info.cpu_model.empty()) info.cpu_model = "unknown";
  info.isa = isa_level(root, system.machine);
  info.cores = static_cast<int>(std::min<int64_t>(affinity_cores(), cpu_quota(root)));
  info.memory_total = kilobytes(root, "MemTotal");
  info.memory_available = kilobytes(root, "MemAvailable");
  apply_memory_limit(root, {"/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"},
                     &info);
  apply_memory_limit(root,
                     {"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes",
                      "memory.usage_in_bytes", "total_inactive_file"},
                     &info);
  return info;
}

}  // namespace obelisk
