#include "runtime/gpu/bound/step_order.h"

#include <algorithm>

namespace redfuser::runtime {
namespace {

// Of more steps, each waits for the one before: every pair is compared.
constexpr size_t kMostCompared = 4096;

bool overlap(const std::vector<MemoryRange>& a, const std::vector<MemoryRange>& b) {
  return std::any_of(a.begin(), a.end(), [&](const MemoryRange& x) {
    return std::any_of(b.begin(), b.end(), [&](const MemoryRange& y) {
      return std::max(x.begin, y.begin) < std::min(x.end, y.end);
    });
  });
}

bool conflict(const StepMemory& before, const StepMemory& after) {
  return overlap(before.writes, after.reads) || overlap(before.writes, after.writes) ||
         overlap(before.reads, after.writes);
}

}  // namespace

std::vector<std::vector<size_t>> awaited_steps(const std::vector<StepMemory>& steps) {
  std::vector<std::vector<size_t>> result(steps.size());
  if (steps.size() > kMostCompared) {
    for (size_t i = 1; i < steps.size(); ++i) result[i] = {i - 1};
    return result;
  }
  // Bit j of reached[i]: step i waits for step j, through others or not.
  std::vector<std::vector<bool>> reached(steps.size(), std::vector<bool>(steps.size()));
  for (size_t i = 0; i < steps.size(); ++i) {
    for (size_t j = i; j-- > 0;) {
      if (reached[i][j] || !conflict(steps[j], steps[i])) continue;
      result[i].push_back(j);
      reached[i][j] = true;
      for (size_t k = 0; k < j; ++k) {
        if (reached[j][k]) reached[i][k] = true;
      }
    }
    std::reverse(result[i].begin(), result[i].end());
  }
  return result;
}

}  // namespace redfuser::runtime
