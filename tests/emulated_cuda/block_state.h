// A block of an emulated launch while it runs. Internal to block.cpp and services.cpp.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "emulated_cuda/block.h"

namespace redfuser::emulated_cuda {

// The most dynamic shared memory of a block, bytes.
inline constexpr size_t kArena = 227 * 1024;
inline constexpr unsigned kWarp = 32, kWarpgroup = 128;

// Threads that wait for each other. The last to arrive runs `act` and releases the others.
struct Meeting {
  unsigned arrived = 0, generation = 0, votes = 0, result = 0;
  emulated::Act act = nullptr;
  std::vector<void*> operands;

  void finish();
};

// A thread as a coroutine of its host thread.
struct Fiber {
  emulated::Thread thread;
  jmp_buf at;
  ucontext_t start;
  const Meeting* waits = nullptr;
  unsigned generation = 0;                 // of the meeting that it waits for
  unsigned long long cluster_awaited = 0;  // the cluster's generation once all have arrived
  bool started = false, ended = false, spins = false;

  bool can_run() const { return !ended && (waits == nullptr || waits->generation != generation); }
};

struct Cluster {
  std::mutex mutex;
  unsigned blocks = 1, arrived = 0;  // of those blocks
  unsigned long long generation = 0;
  std::vector<emulated::Block*> members;
};

// The fiber that runs in this host thread, and how it gives way to the scheduler.
Fiber& running();
void leave();

}  // namespace redfuser::emulated_cuda

namespace emulated {

struct Block {
  redfuser::emulated_cuda::Fiber* fibers = nullptr;
  unsigned threads = 0, alive = 0;
  // Of a warp and a mask; of a warpgroup's complement and 0.
  std::map<std::pair<unsigned, unsigned>, redfuser::emulated_cuda::Meeting> warps;
  std::map<int, redfuser::emulated_cuda::Meeting> barriers;  // 0: all threads
  char* arena = nullptr;                                     // dynamic shared memory
  char* anchor = nullptr;                                    // among the static shared variables
  redfuser::emulated_cuda::Cluster* cluster = nullptr;
  unsigned rank = 0;
  unsigned cluster_arrived = 0;  // threads

  // Threads of the mask that have not ended, of the warp whose first thread this is.
  unsigned expected(unsigned first, unsigned mask) const;
};

}  // namespace emulated
