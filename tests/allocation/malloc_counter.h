// Counts heap allocations by the library whose code asked for them. The executable replaces malloc
// and its kin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace obelisk {

struct AllocationCount {
  int64_t ours = 0;                 // asked for by frames of this program
  int64_t libraries = 0;            // by MPI and others
  std::vector<std::string> places;  // of the first few of ours: the frames that asked
};

void start_counting_allocations();
AllocationCount stop_counting_allocations();

}  // namespace obelisk
