// Shared memory by its addresses, and asynchronous copies to it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <vector>

#include "emulated_cuda/language.h"

namespace emulated {

template <class T>
T& shared(unsigned address) {
  if (address % sizeof(T) != 0) std::abort();
  return *reinterpret_cast<T*>(host.pointer_to(address));
}

// Copies to shared memory that are done where the thread waits for them.
struct Copy {
  void* to;
  const void* from;
  int width, bytes, group;
};
struct Copies {
  std::vector<Copy> waiting;
  int group = 0;
};
inline thread_local std::vector<Copies> copies(1024);

inline void copy_later(void* to, const void* from, int width, int bytes) {
  if (reinterpret_cast<uintptr_t>(to) % width != 0 ||
      (bytes > 0 && reinterpret_cast<uintptr_t>(from) % width != 0)) {
    std::abort();
  }
  Copies& own = copies[current->number];
  own.waiting.push_back({to, from, width, bytes, own.group});
}
inline void await_copies(int pending) {
  Copies& own = copies[current->number];
  size_t done = 0;
  for (; done < own.waiting.size() && own.waiting[done].group < own.group - pending; ++done) {
    const Copy& copy = own.waiting[done];
    std::memset(copy.to, 0, static_cast<size_t>(copy.width));
    if (copy.bytes > 0) std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
  }
  own.waiting.erase(own.waiting.begin(), own.waiting.begin() + static_cast<long>(done));
}
inline void start_thread() { copies[current->number] = {}; }

}  // namespace emulated
