// Where buffers that live for a while lie in one block of memory.
#pragma once

#include <cstdint>
#include <vector>

namespace redfuser::runtime {

// A buffer that is in use at the steps [first, last].
struct BufferLife {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

struct Arena {
  std::vector<int64_t> offsets;  // one per buffer, multiples of kArenaAlignment
  int64_t bytes = 0;
};

inline constexpr int64_t kArenaAlignment = 256;
// `bytes` up to the next multiple of it. Throws UserError where that overflows.
int64_t aligned_bytes(int64_t bytes);

// Buffers whose lives meet do not overlap. Greedy by size (Pisarchyk and Lee: Efficient Memory
// Management for Deep Neural Net Inference, 2020): largest first, each at the lowest offset that is
// free for its whole life. Deterministic. Throws UserError when the sizes overflow int64.
Arena plan_arena(const std::vector<BufferLife>& buffers);

}  // namespace redfuser::runtime
