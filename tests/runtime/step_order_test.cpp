// The edges of a run's graph: steps that touch the same bytes keep their order, others need none.
#include "runtime/gpu/bound/step_order.h"

#include <gtest/gtest.h>

#include <random>

namespace redfuser::runtime {
namespace {

using Edges = std::vector<std::vector<size_t>>;

TEST(StepOrder, FollowsTheBytes) {
  const MemoryRange input{0, 10}, left{100, 110}, right{110, 120}, result{200, 210};
  const std::vector<StepMemory> steps = {
      {{input}, {left}},          // 0
      {{input}, {right}},         // 1: beside 0
      {{left, right}, {result}},  // 2: after both
      {{result}, {left}},         // 3: after 2, by which it is after 0
      {{input}, {{205, 215}}},    // 4: overwrites what 3 reads, and what 2 writes
  };
  EXPECT_EQ(awaited_steps(steps), (Edges{{}, {}, {0, 1}, {2}, {3}}));
}

TEST(StepOrder, OfNothing) {
  EXPECT_TRUE(awaited_steps({}).empty());
  EXPECT_EQ(awaited_steps({{}, {}}), (Edges{{}, {}}));
}

std::vector<StepMemory> drawn_steps(std::mt19937& generator, size_t count) {
  std::vector<StepMemory> steps(count);
  const auto range = [&] {
    const uint64_t begin = generator() % 40;
    return MemoryRange{begin, begin + generator() % 4};
  };
  for (StepMemory& step : steps) {
    for (unsigned i = generator() % 3; i-- > 0;) step.reads.push_back(range());
    for (unsigned i = generator() % 2 + 1; i-- > 0;) step.writes.push_back(range());
  }
  return steps;
}

bool share(const std::vector<MemoryRange>& a, const std::vector<MemoryRange>& b) {
  for (uint64_t byte = 0; byte < 50; ++byte) {
    const auto has = [&](const std::vector<MemoryRange>& ranges) {
      for (const MemoryRange& range : ranges) {
        if (range.begin <= byte && byte < range.end) return true;
      }
      return false;
    };
    if (has(a) && has(b)) return true;
  }
  return false;
}

// Two steps have a path if and only if steps that share bytes lead from one to the other, and no
// edge goes beside a path.
TEST(StepOrder, IsTheLeastThatKeepsEveryConflict) {
  std::mt19937 generator(5);
  for (int round = 0; round < 200; ++round) {
    const std::vector<StepMemory> steps = drawn_steps(generator, 12);
    const Edges edges = awaited_steps(steps);
    std::vector<std::vector<bool>> path(12, std::vector<bool>(12)), wanted = path;
    for (size_t i = 0; i < 12; ++i) {
      for (size_t j = 0; j < i; ++j) {
        const bool conflict = share(steps[j].writes, steps[i].reads) ||
                              share(steps[j].writes, steps[i].writes) ||
                              share(steps[j].reads, steps[i].writes);
        if (!conflict) continue;
        wanted[i][j] = true;
        for (size_t k = 0; k < j; ++k) wanted[i][k] = wanted[i][k] || wanted[j][k];
      }
      for (const size_t j : edges[i]) {
        for (const size_t other : edges[i]) {
          EXPECT_FALSE(path[other][j]) << "an edge beside a path";
        }
        path[i][j] = true;
      }
      for (const size_t j : edges[i]) {
        for (size_t k = 0; k < j; ++k) path[i][k] = path[i][k] || path[j][k];
      }
    }
    EXPECT_EQ(path, wanted);
  }
}

}  // namespace
}  // namespace redfuser::runtime
