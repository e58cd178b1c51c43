#include "framework/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>

namespace obelisk {

void append_bytes(std::string& out, double bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t i = 0;
  while (std::abs(bytes) >= 1000 && std::isfinite(bytes) && i + 1 < kUnits.size()) {
    bytes /= 1024;
    ++i;
  }
  fmt::format_to(std::back_inserter(out), "{:.3g} {}", bytes, kUnits[i]);
}

std::string bytes_text(double bytes) {
  std::string out;
  append_bytes(out, bytes);
  return out;
}

}  // namespace obelisk
