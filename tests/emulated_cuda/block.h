// Runs the threads of a launch as coroutines.
#pragma once

#include <string>

#include "emulated_cuda/emulated.h"

namespace redfuser::emulated_cuda {

// What a kernel's library has for its launches.
struct KernelEntry {
  void (*run)(void** arguments) = nullptr;
  emulated::Thread** (*current)() = nullptr;  // of the calling host thread
  char* (*anchor)() = nullptr;                // among its static shared variables
};

struct Launch {
  emulated::Index grid, block;
  unsigned shared_bytes = 0;
  unsigned cluster = 1;   // adjacent blocks
  bool together = false;  // all blocks at once (a cooperative launch)
};

// Runs all threads to their ends. Returns the problem if threads wait for each other for ever.
std::string run_blocks(const KernelEntry& kernel, const Launch& launch, void** arguments);

const emulated::Services& services();

}  // namespace redfuser::emulated_cuda
