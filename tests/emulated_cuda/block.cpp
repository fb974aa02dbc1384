#include "emulated_cuda/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "emulated_cuda/block_state.h"

namespace redfuser::emulated_cuda {
namespace {

using emulated::Block;
using emulated::Index;

constexpr size_t kStack = 256 * 1024;
constexpr auto kPatience = std::chrono::seconds(60);

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

void fiber_main() {
  host.kernel->run(host.arguments);
  running().ended = true;
  _longjmp(host.scheduler, 1);
}

// Lets barriers and operations of a warp go on whose other threads have all arrived.
void end_thread(Block& b, const Fiber& fiber) {
  --b.alive;
  Meeting& all = b.barriers[0];
  if (b.alive > 0 && all.arrived == b.alive) all.finish();
  const unsigned warp = fiber.thread.number / kWarp;
  for (auto& [key, meeting] : b.warps) {
    if (key.first != warp || key.second == 0 || meeting.arrived == 0) continue;
    if (meeting.arrived == b.expected(warp * kWarp, key.second)) meeting.finish();
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
      if (!fiber.can_run()) continue;
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

// Whether the block has written only the dynamic shared memory of its launch.
bool stays_inside(const Block& b, unsigned bytes) {
  const bool inside = std::all_of(b.arena + bytes, b.arena + kArena,
                                  [](char byte) { return byte == static_cast<char>(0xff); });
  if (!inside) std::fprintf(stderr, "a block writes beyond %u bytes of shared memory\n", bytes);
  return inside;
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
  const bool ended = run_block(b) && stays_inside(b, launch.shared_bytes);
  if (!ended) failed = true;
  return ended;
}

// Every block begins with NaN in its dynamic shared memory. Static shared variables keep the values
// of the host thread's block before.
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

Fiber& running() { return *host.running; }

void leave() {
  if (_setjmp(running().at) == 0) _longjmp(host.scheduler, 1);
}

std::string run_blocks(const KernelEntry& kernel, const Launch& launch, void** arguments) {
  const unsigned long long blocks =
      static_cast<unsigned long long>(launch.grid.x) * launch.grid.y * launch.grid.z;
  const auto problem = [](bool ended) {
    return ended ? std::string()
                 : "threads wait for others that do not come, or write beyond their memory";
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
