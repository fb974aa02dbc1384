// What an emulated kernel, compiled for the host, asks of the program that runs it. Threads of a
// block are coroutines of one host thread, so that static shared variables are thread_local; those
// of a cluster or of a cooperative launch are host threads of their own.
#pragma once

#include <cstdint>

namespace emulated {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

// Work that the last of several threads does for all. `operands` are the threads' own, null of
// those that have ended.
using Act = void (*)(void** operands, int count);

struct Block;

struct Thread {
  Index index, block, block_size, grid_size;
  unsigned number = 0;  // within the block
  Block* owner = nullptr;
};

struct Services {
  // All threads of `mask` of the caller's warp, or of its warpgroup, call it.
  void (*with_warp)(unsigned mask, void* operand, Act act);
  void (*with_warpgroup)(void* operand, Act act);
  // Named barrier `id` of `threads` threads (0: all of the block that have not ended). Returns how
  // many of them vote; 0 if the caller does not wait.
  unsigned (*meet)(int id, unsigned threads, bool vote, bool waits);
  // Lets others run; for loops that wait for what another thread writes.
  void (*yield)();

  char* (*dynamic_shared)();
  // Addresses of shared memory as instructions have them: 0 to 2^27 of the own block; with
  // (rank + 1) · 2^27 added of a block of the cluster. `anchor` is a static variable's place.
  unsigned (*address_of)(const void* pointer);
  char* (*pointer_to)(unsigned address);
  unsigned (*cluster_rank)();
  void (*cluster_arrive)();
  void (*cluster_wait)();
  void* (*mutex)();  // a std::mutex
};

}  // namespace emulated
