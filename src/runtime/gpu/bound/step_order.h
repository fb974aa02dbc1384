// Which steps of a run wait for which: the edges of its CUDA graph.
#pragma once

#include <vector>

#include "cuda/driver_api.h"

namespace redfuser::runtime {

struct MemoryRange {
  cuda::DevicePointer begin = 0, end = 0;  // bytes [begin, end)
};
struct StepMemory {
  std::vector<MemoryRange> reads, writes;
};

// For every step the steps before it, in order, that it must not overtake: those that write what it
// reads or writes, or read what it writes. Steps that one of these waits for are left out. The
// result is that of the steps one after the other, whatever the other steps' order.
std::vector<std::vector<size_t>> awaited_steps(const std::vector<StepMemory>& steps);

}  // namespace redfuser::runtime
