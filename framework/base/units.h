// Sizes as people read them.
#pragma once

#include <string>

namespace obelisk {

// 512 B, 3.4 KiB, 312 MiB, 1.5 GiB: three significant digits, appended to `out`, which allocates
// only when it has to grow.
void append_bytes(std::string& out, double bytes);
std::string bytes_text(double bytes);

}  // namespace obelisk
