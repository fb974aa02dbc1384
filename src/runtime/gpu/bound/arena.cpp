#include "runtime/gpu/bound/arena.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace redfuser::runtime {

int64_t aligned_bytes(int64_t bytes) {
  int64_t padded = 0;
  if (__builtin_add_overflow(bytes, kArenaAlignment - 1, &padded)) {
    user_error("a tensor of {} bytes is too large", bytes);
  }
  return padded / kArenaAlignment * kArenaAlignment;
}

namespace {

bool meet(const BufferLife& a, const BufferLife& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

Arena plan_arena(const std::vector<BufferLife>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  Arena arena;
  arena.offsets.assign(buffers.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (const size_t buffer : order) {
    const int64_t bytes = aligned_bytes(buffers[buffer].bytes);
    if (bytes == 0) continue;
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (!meet(buffers[buffer], buffers[other])) continue;
      if (arena.offsets[other] - offset >= bytes) break;
      offset = std::max(offset, arena.offsets[other] + aligned_bytes(buffers[other].bytes));
    }
    int64_t end = 0;
    if (__builtin_add_overflow(offset, bytes, &end)) user_error("the tensors are too large");
    arena.offsets[buffer] = offset;
    arena.bytes = std::max(arena.bytes, end);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), buffer,
                         [&](size_t a, size_t b) { return arena.offsets[a] < arena.offsets[b]; }),
        buffer);
  }
  return arena;
}

}  // namespace redfuser::runtime
