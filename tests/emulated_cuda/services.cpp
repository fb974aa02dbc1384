// What a running thread asks for (emulated.h).
#include "emulated_cuda/block_state.h"

namespace emulated {

unsigned Block::expected(unsigned first, unsigned mask) const {
  unsigned count = 0;
  for (unsigned lane = 0; lane < redfuser::emulated_cuda::kWarp && first + lane < threads; ++lane) {
    if ((mask >> lane & 1) != 0 && !fibers[first + lane].ended) ++count;
  }
  return count;
}

}  // namespace emulated

namespace redfuser::emulated_cuda {

void Meeting::finish() {
  if (act != nullptr) act(operands.data(), static_cast<int>(operands.size()));
  arrived = 0;
  result = votes;
  votes = 0;
  operands.clear();
  ++generation;
}

namespace {

using emulated::Act;
using emulated::Block;

constexpr unsigned kRankShift = 27, kDynamic = 1024, kStatic = 1 << 26;

Block& block() { return *running().thread.owner; }

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
  if (++meeting.arrived == expected) return meeting.finish();
  wait_for(meeting);
}

void with_warp(unsigned mask, void* operand, Act act) {
  Block& b = block();
  const unsigned number = running().thread.number, first = number / kWarp * kWarp;
  with_group(b.warps[{first / kWarp, mask}], number - first, kWarp, b.expected(first, mask),
             operand, act);
}

void with_warpgroup(void* operand, Act act) {
  const unsigned number = running().thread.number, group = number / kWarpgroup;
  with_group(block().warps[{~group, 0}], number % kWarpgroup, kWarpgroup, kWarpgroup, operand, act);
}

unsigned meet(int id, unsigned threads, bool vote, bool waits) {
  Block& b = block();
  Meeting& meeting = b.barriers[id];
  meeting.votes += vote ? 1 : 0;
  if (++meeting.arrived == (threads == 0 ? b.alive : threads)) {
    meeting.finish();
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

// The cluster's barrier counts blocks: the last thread of each arrives for it.
void cluster_arrive() {
  Block& b = block();
  const std::lock_guard lock(b.cluster->mutex);
  running().cluster_awaited = b.cluster->generation + 1;
  if (++b.cluster_arrived < b.threads) return;
  b.cluster_arrived = 0;
  if (++b.cluster->arrived < b.cluster->blocks) return;
  b.cluster->arrived = 0;
  ++b.cluster->generation;
}

bool cluster_is_there() {
  Cluster& cluster = *block().cluster;
  const std::lock_guard lock(cluster.mutex);
  return cluster.generation >= running().cluster_awaited;
}

void cluster_wait() {
  while (!cluster_is_there()) yield();
}

void* barrier_mutex() {
  static std::mutex mutex;
  return &mutex;
}

}  // namespace

const emulated::Services& services() {
  static const emulated::Services kServices{
      with_warp,  with_warpgroup, meet,           yield,        dynamic_shared, address_of,
      pointer_to, cluster_rank,   cluster_arrive, cluster_wait, barrier_mutex};
  return kServices;
}

}  // namespace redfuser::emulated_cuda
