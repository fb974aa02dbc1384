#include "emulated_cuda/block.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace redfuser::emulated_cuda {

using emulated::Act;
using emulated::Index;
using emulated::Thread;

constexpr size_t kStack = 256 * 1024, kArena = 227 * 1024;
constexpr unsigned kWarp = 32, kWarpgroup = 128;
constexpr unsigned kRankShift = 27, kDynamic = 1024, kStatic = 1 << 26;
constexpr auto kPatience = std::chrono::seconds(20);

// Threads that come together.
struct Meeting {
  unsigned arrived = 0, generation = 0, votes = 0, result = 0;
  Act act = nullptr;
  std::vector<void*> operands;
};

struct Fiber {
  Thread thread;
  jmp_buf at;
  ucontext_t start;
  char* stack = nullptr;
  const Meeting* waits = nullptr;
  unsigned generation = 0;
  bool started = false, ended = false, spins = false;
};

struct Cluster {
  std::mutex mutex;
  unsigned blocks = 1, arrived = 0;
  unsigned long long generation = 0;
  std::vector<emulated::Block*> members;
};

}  // namespace redfuser::emulated_cuda

namespace emulated {

struct Block {
  redfuser::emulated_cuda::Fiber* fibers = nullptr;
  unsigned threads = 0, alive = 0;
  std::map<std::pair<unsigned, unsigned>, redfuser::emulated_cuda::Meeting> warps;
  std::map<int, redfuser::emulated_cuda::Meeting> barriers;
  char* arena = nullptr;
  char* anchor = nullptr;
  redfuser::emulated_cuda::Cluster* cluster = nullptr;
  unsigned rank = 0;
};

}  // namespace emulated

namespace redfuser::emulated_cuda {
namespace {

using emulated::Block;

// Of one host thread.
struct Host {
  jmp_buf scheduler;
  Fiber* running = nullptr;
  const KernelEntry* kernel = nullptr;
  void** arguments = nullptr;
  std::vector<char*> stacks;
  char* arena = nullptr;

  ~Host() {
    for (char* stack : stacks) munmap(stack, kStack);
    std::free(arena);
  }
};

thread_local Host host;

Fiber& running() { return *host.running; }
Block& block() { return *running().thread.owner; }

void leave() {
  if (_setjmp(running().at) == 0) _longjmp(host.scheduler, 1);
}

void fiber_main() {
  host.kernel->run(host.arguments);
  running().ended = true;
  _longjmp(host.scheduler, 1);
}

unsigned expected_of_warp(const Block& b, unsigned first, unsigned mask) {
  unsigned count = 0;
  for (unsigned lane = 0; lane < kWarp && first + lane < b.threads; ++lane) {
    if ((mask >> lane & 1) != 0 && !b.fibers[first + lane].ended) ++count;
  }
  return count;
}

void finish(Meeting& meeting) {
  if (meeting.act != nullptr) {
    meeting.act(meeting.operands.data(), static_cast<int>(meeting.operands.size()));
  }
  meeting.arrived = 0;
  meeting.result = meeting.votes;
  meeting.votes = 0;
  meeting.operands.clear();
  ++meeting.generation;
}

void wait_for(Meeting& meeting) {
  running().waits = &meeting;
  running().generation = meeting.generation;
  leave();
}

void with_group(Meeting& meeting, unsigned place, unsigned size, unsigned expected, void* operand,
                Act act) {
  if (meeting.operands.empty()) meeting.operands.assign(size, nullptr);
  meeting.operands[place] = operand;
  meeting.act = act;
  if (++meeting.arrived == expected) return finish(meeting);
  wait_for(meeting);
}

void with_warp(unsigned mask, void* operand, Act act) {
  Block& b = block();
  const unsigned number = running().thread.number, first = number / kWarp * kWarp;
  with_group(b.warps[{first / kWarp, mask}], number - first, kWarp,
             expected_of_warp(b, first, mask), operand, act);
}

void with_warpgroup(void* operand, Act act) {
  Block& b = block();
  const unsigned number = running().thread.number, group = number / kWarpgroup;
  with_group(b.warps[{~group, 0}], number % kWarpgroup, kWarpgroup, kWarpgroup, operand, act);
}

unsigned meet(int id, unsigned threads, bool vote, bool waits) {
  Block& b = block();
  Meeting& meeting = b.barriers[id];
  meeting.votes += vote ? 1 : 0;
  if (++meeting.arrived == (threads == 0 ? b.alive : threads)) {
    finish(meeting);
  } else if (waits) {
    wait_for(meeting);
  }
  return meeting.result;
}

void yield() {
  running().spins = true;
  leave();
}

char* dynamic_shared() { return block().arena; }

unsigned address_of(const void* pointer) {
  const auto* p = static_cast<const char*>(pointer);
  const Block& b = block();
  if (p >= b.arena && p < b.arena + kArena) return kDynamic + static_cast<unsigned>(p - b.arena);
  return static_cast<unsigned>(kStatic + (p - b.anchor));
}

char* pointer_to(unsigned address) {
  const unsigned rank = address >> kRankShift, offset = address & ((1u << kRankShift) - 1);
  const Block& b = rank == 0 ? block() : *block().cluster->members[rank - 1];
  if (offset < kDynamic + kArena) return b.arena + (offset - kDynamic);
  return b.anchor + (static_cast<long long>(offset) - kStatic);
}

unsigned cluster_rank() { return block().rank; }

// A cluster's barrier counts blocks: the last thread of each arrives for it.
struct ClusterPhase {
  unsigned arrived = 0;
  unsigned long long awaited = 0;
};
thread_local std::map<const Block*, ClusterPhase> phases;

void cluster_arrive() {
  Block& b = block();
  ClusterPhase& phase = phases[&b];
  if (phase.arrived == 0) {
    const std::lock_guard lock(b.cluster->mutex);
    phase.awaited = b.cluster->generation + 1;
  }
  if (++phase.arrived < b.threads) return;
  phase.arrived = 0;
  const std::lock_guard lock(b.cluster->mutex);
  if (++b.cluster->arrived < b.cluster->blocks) return;
  b.cluster->arrived = 0;
  ++b.cluster->generation;
}

void cluster_wait() {
  Block& b = block();
  const unsigned long long awaited = phases[&b].awaited;
  for (;;) {
    {
      const std::lock_guard lock(b.cluster->mutex);
      if (b.cluster->generation >= awaited) return;
    }
    yield();
  }
}

void* barrier_mutex() {
  static std::mutex mutex;
  return &mutex;
}

bool can_run(const Fiber& fiber) {
  return !fiber.ended && (fiber.waits == nullptr || fiber.waits->generation != fiber.generation);
}

// Barriers and warps whose other threads have all ended.
void end_thread(Block& b, Fiber& fiber) {
  --b.alive;
  Meeting& all = b.barriers[0];
  if (b.alive > 0 && all.arrived == b.alive) finish(all);
  const unsigned warp = fiber.thread.number / kWarp;
  for (auto& [key, meeting] : b.warps) {
    if (key.first != warp || key.second == 0 || meeting.arrived == 0) continue;
    if (meeting.arrived == expected_of_warp(b, warp * kWarp, key.second)) finish(meeting);
  }
}

void resume(Fiber& fiber) {
  host.running = &fiber;
  *host.kernel->current() = &fiber.thread;
  fiber.waits = nullptr;
  fiber.spins = false;
  if (_setjmp(host.scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.at, 1);
  fiber.started = true;
  setcontext(&fiber.start);
}

void prepare(Fiber& fiber, char* stack) {
  fiber.stack = stack;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = stack;
  fiber.start.uc_stack.ss_size = kStack;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, fiber_main, 0);
}

// Runs the block; false if its threads wait for ever. Every round begins with another thread, and
// goes up or down, so that a kernel without a barrier that it needs gives other results.
bool run_block(Block& b) {
  auto last = std::chrono::steady_clock::now();
  for (unsigned round = 1; b.alive > 0; ++round) {
    bool moved = false;
    const unsigned first = round * 2654435761u % b.threads;
    for (unsigned i = 0; i < b.threads; ++i) {
      Fiber& fiber = b.fibers[(first + (round % 2 == 0 ? i : b.threads - i)) % b.threads];
      if (!can_run(fiber)) continue;
      resume(fiber);
      if (fiber.ended) end_thread(b, fiber);
      moved |= !fiber.spins;
    }
    if (moved) {
      last = std::chrono::steady_clock::now();
    } else {
      if (std::chrono::steady_clock::now() - last > kPatience) return false;
      std::this_thread::yield();
    }
  }
  return true;
}

Index index_of(unsigned long long number, const Index& size) {
  return {static_cast<unsigned>(number % size.x), static_cast<unsigned>(number / size.x % size.y),
          static_cast<unsigned>(number / size.x / size.y)};
}

bool run_one(const KernelEntry& kernel, const Launch& launch, void** arguments,
             unsigned long long number, Block& b, std::atomic<bool>& failed) {
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  while (host.stacks.size() < threads) {
    void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    host.stacks.push_back(static_cast<char*>(stack));
  }
  const auto fibers = std::make_unique<Fiber[]>(threads);
  b.fibers = fibers.get(), b.threads = b.alive = threads;
  for (unsigned i = 0; i < threads; ++i) {
    Fiber& fiber = b.fibers[i];
    fiber.thread = {
        index_of(i, launch.block), index_of(number, launch.grid), launch.block, launch.grid, i, &b};
    prepare(fiber, host.stacks[i]);
  }
  host.kernel = &kernel, host.arguments = arguments;
  const bool ended = run_block(b);
  if (!ended) failed = true;
  phases.erase(&b);
  return ended;
}

// Shared memory that a block does not write holds no numbers.
void place(Block& b, const KernelEntry& kernel) {
  if (host.arena == nullptr) host.arena = static_cast<char*>(std::aligned_alloc(1024, kArena));
  std::memset(host.arena, 0xff, kArena);
  b.arena = host.arena;
  b.anchor = kernel.anchor();
}

// The blocks of a cluster, or all, each in a host thread; they start when all have their memory.
bool run_together(const KernelEntry& kernel, const Launch& launch, void** arguments,
                  unsigned long long first, unsigned count) {
  std::atomic<bool> failed = false;
  std::vector<Block> blocks(count);
  std::vector<Cluster> clusters(count / launch.cluster);
  for (unsigned i = 0; i < count; ++i) {
    Cluster& cluster = clusters[i / launch.cluster];
    cluster.blocks = launch.cluster;
    cluster.members.push_back(&blocks[i]);
    blocks[i].cluster = &cluster, blocks[i].rank = i % launch.cluster;
  }
  std::atomic<unsigned> placed = 0, done = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      place(blocks[i], kernel);
      for (++placed; placed < count;) std::this_thread::yield();
      run_one(kernel, launch, arguments, first + i, blocks[i], failed);
      for (++done; done < count && !failed;) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return !failed;
}

}  // namespace

const emulated::Services& services() {
  static const emulated::Services kServices{
      with_warp,  with_warpgroup, meet,           yield,        dynamic_shared, address_of,
      pointer_to, cluster_rank,   cluster_arrive, cluster_wait, barrier_mutex};
  return kServices;
}

std::string run_blocks(const KernelEntry& kernel, const Launch& launch, void** arguments) {
  const unsigned long long blocks =
      static_cast<unsigned long long>(launch.grid.x) * launch.grid.y * launch.grid.z;
  const auto problem = [](bool ended) {
    return ended ? std::string() : "threads of a block wait for others that do not come";
  };
  if (launch.together) {
    return problem(run_together(kernel, launch, arguments, 0, static_cast<unsigned>(blocks)));
  }
  std::atomic<unsigned long long> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (;;) {
      const unsigned long long first = next.fetch_add(launch.cluster);
      if (first >= blocks || failed) return;
      if (launch.cluster > 1) {
        if (!run_together(kernel, launch, arguments, first, launch.cluster)) failed = true;
        continue;
      }
      Block b;
      Cluster own;
      own.members = {&b};
      b.cluster = &own;
      place(b, kernel);
      run_one(kernel, launch, arguments, first, b, failed);
    }
  };
  std::thread other(work);
  std::thread one(work);
  other.join(), one.join();
  return problem(!failed);
}

}  // namespace redfuser::emulated_cuda
