// Ensembles of trees: TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier. What ONNX
// leaves open follows ONNX Runtime: a transform of a single score, a single column of weights for
// two classes.
#include <algorithm>
#include <set>
#include <span>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/ml/forest_walk.h"
#include "cpu/opaque/ml/scores.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

enum class Aggregate { Average, Sum, Min, Max };  // in TreeEnsemble's numbering

struct Ensemble {
  Forest forest;
  ForestWalk walk;
  int64_t targets = 1;
  Aggregate aggregate = Aggregate::Sum;
  ScoreTransform transform = ScoreTransform::None;
  std::vector<double> base;
  // Classifiers: labels, and the class with weights if only one of two has some (else -1).
  Tensor labels;
  int64_t only = -1;
  bool positive = true;  // no weight is negative
};

// One row: the sum of every target, and whether any leaf had a weight for it.
struct Row {
  std::vector<double> scores;
  std::vector<uint8_t> present;
};

Aggregate aggregate_of(const OpaqueCall& call) {
  static constexpr const char* kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string name = call.text("aggregate_function", "SUM");
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) call.fail(fmt::format("unknown aggregate_function \"{}\"", name));
  return static_cast<Aggregate>(found - std::begin(kNames));
}

std::vector<double> base_values(const OpaqueCall& call) {
  return reals_attribute(
      call, call.has("base_values_as_tensor") ? "base_values_as_tensor" : "base_values");
}

void require_base(const OpaqueCall& call, const Ensemble& ensemble, size_t wanted) {
  if (ensemble.base.empty() || ensemble.base.size() == wanted) return;
  call.fail(fmt::format("it has {} base_values, not {}", ensemble.base.size(), wanted));
}

Ensemble new_ensemble(const OpaqueCall& call) {
  Ensemble ensemble;
  ensemble.targets = call.integer("n_targets", 1);
  const int64_t aggregate = call.integer("aggregate_function", 1);
  if (aggregate < 0 || aggregate > 3) {
    call.fail(fmt::format("unknown aggregate_function {}", aggregate));
  }
  ensemble.aggregate = static_cast<Aggregate>(aggregate);
  ensemble.transform = score_transform(call);
  ensemble.forest = forest_of_ensemble(call, ensemble.targets);
  ensemble.walk = ForestWalk(ensemble.forest);
  return ensemble;
}

Ensemble regressor(const OpaqueCall& call) {
  Ensemble ensemble;
  ensemble.targets = call.integer("n_targets", 1);
  ensemble.aggregate = aggregate_of(call);
  ensemble.transform = score_transform(call);
  ensemble.base = base_values(call);
  require_base(call, ensemble, static_cast<size_t>(ensemble.targets));
  ensemble.forest = forest_of_nodes(call, "target", ensemble.targets);
  ensemble.walk = ForestWalk(ensemble.forest);
  return ensemble;
}

Ensemble classifier(const OpaqueCall& call) {
  Ensemble ensemble;
  ensemble.labels = class_labels(call, "classlabels_int64s", "classlabels_strings");
  ensemble.targets = ensemble.labels.size();
  ensemble.transform = score_transform(call);
  ensemble.base = base_values(call);
  ensemble.forest = forest_of_nodes(call, "class", ensemble.targets);
  ensemble.walk = ForestWalk(ensemble.forest);
  std::set<int64_t> classes;
  for (const Forest::Weight& weight : ensemble.forest.weights) {
    classes.insert(weight.target);
    if (weight.value < 0) ensemble.positive = false;
  }
  if (ensemble.targets == 2 && classes.size() == 1) ensemble.only = *classes.begin();
  const bool one = ensemble.only >= 0 || (ensemble.targets == 2 && ensemble.base.size() == 1);
  require_base(call, ensemble, one ? 1 : static_cast<size_t>(ensemble.targets));
  if (ensemble.targets == 1) {
    if (ensemble.labels.dtype() == DType::String) call.fail("a single class must be an integer");
    ensemble.labels = tensor_of_integers({0, 1});
  }
  return ensemble;
}

void add_leaf(const Ensemble& ensemble, const Forest::Node& leaf, Row& row) {
  for (int32_t w = leaf.yes; w < leaf.no; ++w) {
    const Forest::Weight& weight = ensemble.forest.weights[static_cast<size_t>(w)];
    const auto t = static_cast<size_t>(weight.target);
    double& score = row.scores[t];
    if (ensemble.aggregate == Aggregate::Min && row.present[t] != 0) {
      score = std::min(score, weight.value);
    } else if (ensemble.aggregate == Aggregate::Max && row.present[t] != 0) {
      score = std::max(score, weight.value);
    } else {
      score += weight.value;
    }
    row.present[t] = 1;
  }
}

// The sums of rows that lie one after another, tree by tree.
void add_up(const Ensemble& ensemble, const double* x, int64_t width, std::span<Row> rows,
            std::vector<int32_t>& leaves) {
  for (Row& row : rows) {
    std::fill(row.scores.begin(), row.scores.end(), 0.0);
    std::fill(row.present.begin(), row.present.end(), uint8_t{0});
  }
  leaves.resize(rows.size());
  const Forest& forest = ensemble.forest;
  for (const int32_t root : forest.roots) {
    ensemble.walk.leaves(forest, root, x, width, leaves);
    for (size_t r = 0; r < rows.size(); ++r) {
      add_leaf(ensemble, forest.nodes[static_cast<size_t>(leaves[r])], rows[r]);
    }
  }
  if (ensemble.aggregate != Aggregate::Average || forest.roots.empty()) return;
  for (Row& row : rows) {
    for (double& score : row.scores) score /= static_cast<double>(forest.roots.size());
  }
}

// Rows whose numbers stay in the first cache while a tree is walked.
int64_t rows_at_once(int64_t width) {
  constexpr int64_t kBytes = 1 << 14, kLeast = 8, kMost = 64;
  const auto row = std::max<int64_t>(width, 1) * static_cast<int64_t>(sizeof(double));
  return std::clamp(kBytes / row, kLeast, kMost);
}

// Runs every row: body(row number, its sums).
template <typename Body>
void each_row(const OpaqueCall& call, const Ensemble& ensemble, const Body& body) {
  const Dims& dims = call.dims(0);
  const int64_t count = dims[0], width = dims[1];
  if (count > 0 && width < ensemble.forest.features) {
    call.fail(fmt::format("feature {} of {}", ensemble.forest.features - 1, width));
  }
  constexpr int64_t kWalks = 2048;  // for one thread
  const auto trees = static_cast<int64_t>(ensemble.forest.roots.size());
  const ChargedVector<double> x = call.reals_of(0);
  const int64_t most = std::min(rows_at_once(width), count);
  const auto some = [&](int64_t begin, int64_t end) {
    const auto targets = static_cast<size_t>(ensemble.targets);
    const Row empty{std::vector<double>(targets), std::vector<uint8_t>(targets)};
    std::vector<Row> rows(static_cast<size_t>(most), empty);
    std::vector<int32_t> leaves;
    for (int64_t first = begin; first < end; first += most) {
      const std::span<Row> block(rows.data(), static_cast<size_t>(std::min(most, end - first)));
      add_up(ensemble, x.data() + first * width, width, block, leaves);
      for (size_t r = 0; r < block.size(); ++r) body(first + static_cast<int64_t>(r), block[r]);
    }
  };
  parallel_ranges(call.threads(), count, std::max<int64_t>(kWalks / (trees + 1), 1), some);
}

void store(const std::vector<double>& scores, Tensor& y, int64_t row) {
  const auto count = static_cast<int64_t>(scores.size());
  dispatch(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t t = 0; t < count; ++t) {
      y.as<T>()[row * count + t] = static_cast<T>(scores[static_cast<size_t>(t)]);
    }
  });
}

void run_regression(OpaqueCall& call, const Ensemble& ensemble) {
  Tensor& y = call.allocate(0, {call.dims(0)[0], ensemble.targets});
  each_row(call, ensemble, [&](int64_t r, Row& row) {
    for (size_t t = 0; t < ensemble.base.size(); ++t) row.scores[t] += ensemble.base[t];
    transform_scores(ensemble.transform, row.scores.data(), ensemble.targets);
    store(row.scores, y, r);
  });
}

// Two classes, weights for one. Makes both scores and returns the label's position.
int64_t decide_pair(const Ensemble& ensemble, Row& row) {
  const double threshold = ensemble.positive ? 0.5 : 0;
  const bool second = ensemble.only == 1 && row.present[1] != 0;
  if (second) {
    // A score of the second class stands beside a zero, and base_values do not reach it.
    const bool taken = row.scores[1] > threshold;
    transform_scores(ensemble.transform, row.scores.data(), 2);
    return taken ? 1 : 0;
  }
  const double score = row.scores[0] + (ensemble.base.empty() ? 0 : ensemble.base[0]);
  transform_pair(ensemble.transform, ensemble.positive, score, row.scores.data());
  return score > threshold ? 1 : 0;
}

int64_t decide(const Ensemble& ensemble, Row& row) {
  if (ensemble.only >= 0) return decide_pair(ensemble, row);
  for (size_t t = 0; t < ensemble.base.size(); ++t) {
    row.scores[t] += ensemble.base[t];
    row.present[t] = 1;
  }
  int64_t label = -1;
  for (size_t t = 0; t < row.scores.size(); ++t) {
    if (row.present[t] == 0) continue;
    if (label < 0 || row.scores[t] > row.scores[static_cast<size_t>(label)]) {
      label = static_cast<int64_t>(t);
    }
  }
  if (ensemble.targets == 1) label = row.scores[0] > 0 ? 1 : 0;
  transform_scores(ensemble.transform, row.scores.data(), ensemble.targets);
  return std::max<int64_t>(label, 0);
}

}  // namespace

void run_tree_ensemble(OpaqueCall& call) {
  run_regression(call, call.prepared<Ensemble>([&] { return new_ensemble(call); }));
}

void run_tree_ensemble_regressor(OpaqueCall& call) {
  run_regression(call, call.prepared<Ensemble>([&] { return regressor(call); }));
}

void run_tree_ensemble_classifier(OpaqueCall& call) {
  const auto& ensemble = call.prepared<Ensemble>([&] { return classifier(call); });
  const Dims dims{call.dims(0)[0], ensemble.targets};
  Tensor unused_y(ensemble.labels.dtype(), {dims[0]}), unused_z(DType::Float32, dims);
  Tensor& y = call.has_output(0) ? call.allocate(0, {dims[0]}) : unused_y;
  Tensor& z = call.has_output(1) ? call.allocate(1, dims) : unused_z;
  each_row(call, ensemble, [&](int64_t r, Row& row) {
    copy_element(ensemble.labels, decide(ensemble, row), y, r);
    store(row.scores, z, r);
  });
}

}  // namespace redfuser::cpu
