// Class-specific operator new from a free list a thread: the objects a training step makes and
// drops by the thousand (tensor handles, autograd nodes) then cost no call of malloc after the
// first step.
//
// An object may be freed on another thread than it was made on; its memory joins that thread's
// list. Memory is never returned to the system. Under AddressSanitizer the pool steps aside, so
// that use after free is seen.
#pragma once

#include <cstddef>
#include <new>

namespace obelisk {

template <typename T>
class Pooled {
 public:
#ifndef __SANITIZE_ADDRESS__
  static void* operator new(std::size_t size) {
    if (size != sizeof(T)) return ::operator new(size);
    Link*& head = free_list();
    if (head == nullptr) return ::operator new(sizeof(T) < sizeof(Link) ? sizeof(Link) : sizeof(T));
    Link* link = head;
    head = link->next;
    return link;
  }
  static void operator delete(void* pointer, std::size_t size) {
    if (size != sizeof(T)) return ::operator delete(pointer);
    Link* link = ::new (pointer) Link{free_list()};
    free_list() = link;
  }

 private:
  struct Link {
    Link* next;
  };
  static Link*& free_list() {
    static thread_local Link* head = nullptr;
    return head;
  }
#endif
};

}  // namespace obelisk
