#include "tests/allocation/malloc_counter.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <atomic>
#include <cerrno>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace obelisk {
namespace {

constexpr int kMaxFrames = 24;
constexpr int kMaxPlaces = 8;

std::atomic<bool> counting = false;
std::atomic<int64_t> ours = 0, libraries = 0;
void* places[kMaxPlaces][kMaxFrames];
int place_depths[kMaxPlaces];
thread_local bool inside = false;  // backtrace and dladdr may allocate

const char* object_of(void* frame) {
  Dl_info info;
  return dladdr(frame, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Who asked: the first frame outside the C and C++ run-time libraries.
void note_allocation() {
  if (!counting || inside) return;
  inside = true;
  void* frames[kMaxFrames];
  const int depth = backtrace(frames, kMaxFrames);
  const char* program = object_of(reinterpret_cast<void*>(&start_counting_allocations));
  bool is_ours = false;
  for (int i = 2; i < depth; ++i) {  // 0 and 1 are this file's
    const char* object = object_of(frames[i]);
    if (std::strstr(object, "libstdc++") != nullptr || std::strstr(object, "libc.so") != nullptr)
      continue;
    is_ours = std::strcmp(object, program) == 0;
    break;
  }
  if (is_ours) {
    const int64_t index = ours++;
    if (index < kMaxPlaces) {
      std::memcpy(places[index], frames, sizeof(frames));
      place_depths[index] = depth;
    }
  } else {
    ++libraries;
  }
  inside = false;
}

}  // namespace

void start_counting_allocations() {
  void* frames[2];
  backtrace(frames, 2);  // loads what it needs before counting begins
  ours = libraries = 0;
  counting = true;
}

AllocationCount stop_counting_allocations() {
  counting = false;
  AllocationCount count{ours, libraries, {}};
  for (int64_t i = 0; i < std::min<int64_t>(ours, kMaxPlaces); ++i) {
    std::string text;
    char** names = backtrace_symbols(places[i], place_depths[i]);
    for (int k = 2; k < place_depths[i] && k < 12; ++k) text += std::string(names[k]) + "\n";
    std::free(names);
    count.places.push_back(text);
  }
  return count;
}

}  // namespace obelisk

extern "C" {
void* malloc(size_t size) {
  obelisk::note_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  obelisk::note_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) {
  obelisk::note_allocation();
  return __libc_realloc(block, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  obelisk::note_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  obelisk::note_allocation();
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}
}
