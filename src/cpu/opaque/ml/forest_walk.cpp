#include "cpu/opaque/ml/forest_walk.h"

#include <algorithm>

namespace redfuser::cpu {
namespace {

using Test = Forest::Test;

constexpr size_t kRowsAtOnce = 8;

template <Test kTest>
int passes(double x, double split) {
  switch (kTest) {
    case Test::LessEqual:
      return x <= split;
    case Test::Less:
      return x < split;
    case Test::GreaterEqual:
      return x >= split;
    case Test::Greater:
      return x > split;
    case Test::Equal:
      return x == split;
    default:
      return x != split;
  }
}

}  // namespace

ForestWalk::ForestWalk(const Forest& forest) {
  // A leaf reads feature 0.
  if (forest.features == 0) return;
  for (const Forest::Node& node : forest.nodes) {
    if (node.test == Test::Leaf) continue;
    if (node.test == Test::Member || (test_ != Test::Leaf && test_ != node.test)) return;
    test_ = node.test;
  }
  steps_.reserve(forest.nodes.size());
  for (const Forest::Node& node : forest.nodes) {
    const auto own = static_cast<int32_t>(steps_.size());
    const bool leaf = node.test == Test::Leaf;
    steps_.push_back({node.split,
                      node.feature,
                      node.missing_is_true ? 1 : 0,
                      {leaf ? own : node.no, leaf ? own : node.yes}});
  }
}

template <Test kTest, int kLanes>
int32_t* ForestWalk::walk(int32_t root, const double* rows, int64_t width, int32_t* begin,
                          const int32_t* end) const {
  const Step* steps = steps_.data();
  for (; end - begin >= kLanes; begin += kLanes, rows += kLanes * width) {
    int32_t here[kLanes];
    std::fill_n(here, kLanes, root);
    for (int32_t moved = 1; moved != 0;) {
      moved = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        const Step& step = steps[here[lane]];
        const double x = rows[lane * width + step.feature];
        const int taken = passes<kTest>(x, step.split) | (step.missing & static_cast<int>(x != x));
        const int32_t next = step.next[taken];
        moved |= next ^ here[lane];
        here[lane] = next;
      }
    }
    std::copy_n(here, kLanes, begin);
  }
  return begin;
}

template <Test kTest>
void ForestWalk::walk(int32_t root, const double* rows, int64_t width,
                      std::span<int32_t> leaves) const {
  int32_t* const first = leaves.data();
  const int32_t* const end = first + leaves.size();
  int32_t* rest = walk<kTest, static_cast<int>(kRowsAtOnce)>(root, rows, width, first, end);
  walk<kTest, 1>(root, rows + (rest - first) * width, width, rest, end);
}

void ForestWalk::leaves(const Forest& forest, int32_t root, const double* rows, int64_t width,
                        std::span<int32_t> leaves) const {
  // A single row is faster where the processor guesses its branches.
  if (steps_.empty() || leaves.size() < kRowsAtOnce) {
    for (int32_t& leaf : leaves) {
      leaf = static_cast<int32_t>(&forest.leaf(root, rows) - forest.nodes.data());
      rows += width;
    }
    return;
  }
  switch (test_) {
    case Test::Less:
      return walk<Test::Less>(root, rows, width, leaves);
    case Test::GreaterEqual:
      return walk<Test::GreaterEqual>(root, rows, width, leaves);
    case Test::Greater:
      return walk<Test::Greater>(root, rows, width, leaves);
    case Test::Equal:
      return walk<Test::Equal>(root, rows, width, leaves);
    case Test::NotEqual:
      return walk<Test::NotEqual>(root, rows, width, leaves);
    default:
      return walk<Test::LessEqual>(root, rows, width, leaves);
  }
}

}  // namespace redfuser::cpu
