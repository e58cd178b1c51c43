// How often this test program called operator new, over all threads.
#pragma once

#include <cstdint>

namespace obelisk {

int64_t allocation_count();

}  // namespace obelisk
