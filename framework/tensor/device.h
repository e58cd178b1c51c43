// Where a tensor's bytes are. A value type: comparison and printing, no behaviour.
#pragma once

#include <cstdint>
#include <string>

namespace obelisk {

enum class DeviceKind : uint8_t { Cpu, Cuda };

struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

inline std::string to_string(const Device& device) {
  return device.kind == DeviceKind::Cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

}  // namespace obelisk
