// Many rows down the trees of a forest.
#pragma once

#include <span>

#include "cpu/opaque/ml/forest.h"

namespace redfuser::cpu {

// Several rows go down a tree side by side, so that the loads of one hide those of the others.
class ForestWalk {
 public:
  ForestWalk() = default;
  explicit ForestWalk(const Forest& forest);

  // Sets leaves[r] to the number of the leaf for row r, from the root on, in the forest that this
  // was made of. Row r begins at rows + r * width.
  void leaves(const Forest& forest, int32_t root, const double* rows, int64_t width,
              std::span<int32_t> leaves) const;

 private:
  // By node. A leaf leads to itself.
  struct Step {
    double split = 0;
    int32_t feature = 0;
    int32_t missing = 0;  // 1: NaN takes the true branch
    int32_t next[2] = {0, 0};
  };
  template <Forest::Test kTest, int kLanes>
  int32_t* walk(int32_t root, const double* rows, int64_t width, int32_t* begin,
                const int32_t* end) const;
  template <Forest::Test kTest>
  void walk(int32_t root, const double* rows, int64_t width, std::span<int32_t> leaves) const;

  std::vector<Step> steps_;  // empty where the nodes test in several ways
  Forest::Test test_ = Forest::Test::Leaf;
};

}  // namespace redfuser::cpu
