// Ensembles of decision trees in one form, from the attributes of either generation of operators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

struct Forest {
  // In the numbering of TreeEnsemble.
  enum class Test : uint8_t {
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
    Member,
    Leaf
  };
  struct Node {
    double split = 0;
    Test test = Test::Leaf;
    bool missing_is_true = false;  // NaN takes the true branch
    int32_t feature = 0;
    int32_t set = 0;          // Member: index into `sets`
    int32_t yes = 0, no = 0;  // the next node; a leaf's weights are [yes, no)
  };
  struct Weight {
    int64_t target = 0;
    double value = 0;
  };
  std::vector<Node> nodes;
  std::vector<int32_t> roots;
  std::vector<Weight> weights;
  std::vector<std::vector<double>> sets;
  int64_t features = 0;  // a row must have at least as many

  // The leaf for a row of `features` numbers.
  const Node& leaf(int32_t root, const double* row) const;
};

// TreeEnsemble of opset 5. Both throw UserError for lists of different lengths, for numbers of
// nodes, leaves, features or targets (below `targets`) out of range, and for cycles.
Forest forest_of_ensemble(const OpaqueCall& call, int64_t targets);
// TreeEnsembleRegressor and TreeEnsembleClassifier, whose lists of weights are named `prefix`
// (target, class) + `_ids` and so on.
Forest forest_of_nodes(const OpaqueCall& call, const std::string& prefix, int64_t targets);

}  // namespace redfuser::cpu
