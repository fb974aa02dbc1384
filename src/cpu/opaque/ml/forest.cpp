#include "cpu/opaque/ml/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "cpu/opaque/ml/scores.h"

namespace redfuser::cpu {
namespace {

constexpr size_t kMaxNodes = std::numeric_limits<int32_t>::max() / 2;

int32_t checked(const OpaqueCall& call, int64_t i, size_t size, const char* what) {
  if (i < 0 || i >= static_cast<int64_t>(size)) {
    call.fail(fmt::format("{} {} of {}", what, i, size));
  }
  return static_cast<int32_t>(i);
}

void set_feature(const OpaqueCall& call, Forest& forest, Forest::Node& node, int64_t feature) {
  node.feature = checked(call, feature, std::numeric_limits<int32_t>::max(), "feature");
  forest.features = std::max(forest.features, feature + 1);
}

// Trees must not have cycles.
void check_acyclic(const OpaqueCall& call, const Forest& forest) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> states(forest.nodes.size(), kNew);
  std::vector<int32_t> stack = forest.roots;
  while (!stack.empty()) {
    const int32_t at = stack.back();
    uint8_t& state = states[static_cast<size_t>(at)];
    const Forest::Node& node = forest.nodes[static_cast<size_t>(at)];
    if (state != kNew || node.test == Forest::Test::Leaf) {
      state = kDone;
      stack.pop_back();
      continue;
    }
    state = kOpen;
    for (const int32_t next : {node.yes, node.no}) {
      if (states[static_cast<size_t>(next)] == kOpen) call.fail("a tree has a cycle");
      if (states[static_cast<size_t>(next)] == kNew) stack.push_back(next);
    }
  }
}

// The members of each membership node: lists that NaN ends, in the order of the nodes.
void read_members(const OpaqueCall& call, Forest& forest) {
  const std::vector<double> members = reals_attribute(call, "membership_values");
  size_t at = 0;
  for (Forest::Node& node : forest.nodes) {
    if (node.test != Forest::Test::Member) continue;
    node.set = static_cast<int32_t>(forest.sets.size());
    std::vector<double>& set = forest.sets.emplace_back();
    while (at < members.size() && !std::isnan(members[at])) set.push_back(members[at++]);
    if (at == members.size()) call.fail("membership_values has too few lists");
    ++at;
  }
}

struct NodeKey {
  int64_t tree, node;
  bool operator==(const NodeKey&) const = default;
};
struct HashKey {
  size_t operator()(const NodeKey& key) const {
    return static_cast<size_t>(key.tree) * 0x9E3779B97F4A7C15u + static_cast<size_t>(key.node);
  }
};
using NodeIndex = std::unordered_map<NodeKey, int32_t, HashKey>;

Forest::Test test_named(const OpaqueCall& call, const std::string& name) {
  static constexpr const char* kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                           "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames) || name.empty()) {
    call.fail(fmt::format("unknown node mode \"{}\"", name));
  }
  return static_cast<Forest::Test>(found - std::begin(kNames));
}

// A list under its name, or as a tensor.
std::vector<double> reals(const OpaqueCall& call, const std::string& name) {
  return reals_attribute(call, call.has(name + "_as_tensor") ? name + "_as_tensor" : name);
}

void require_length(const OpaqueCall& call, const std::string& name, size_t length, size_t wanted) {
  if (length != wanted) call.fail(fmt::format("{} has {} values, not {}", name, length, wanted));
}

std::vector<int64_t> integers(const OpaqueCall& call, const std::string& name, size_t wanted) {
  std::vector<int64_t> list = call.integers(name, {});
  require_length(call, name, list.size(), wanted);
  return list;
}

// Weights in the order of their leaves; those of inner nodes are ignored.
void read_weights(const OpaqueCall& call, Forest& forest, const NodeIndex& index,
                  const std::string& prefix, int64_t targets) {
  const std::vector<int64_t> ids = call.integers(prefix + "_ids", {});
  const auto trees = integers(call, prefix + "_treeids", ids.size());
  const auto nodes = integers(call, prefix + "_nodeids", ids.size());
  const std::vector<double> values = reals(call, prefix + "_weights");
  require_length(call, prefix + "_weights", values.size(), ids.size());
  if (ids.size() > kMaxNodes) call.fail("it has too many weights");
  std::vector<int32_t> leaves;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto found = index.find({trees[i], nodes[i]});
    if (found == index.end()) {
      call.fail(
          fmt::format("a weight of node {} of tree {}, which is not there", nodes[i], trees[i]));
    }
    checked(call, ids[i], static_cast<size_t>(targets), prefix.c_str());
    leaves.push_back(found->second);
  }
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return leaves[a] < leaves[b]; });
  for (const size_t i : order) {
    Forest::Node& node = forest.nodes[static_cast<size_t>(leaves[i])];
    if (node.test != Forest::Test::Leaf) continue;
    const auto at = static_cast<int32_t>(forest.weights.size());
    if (node.no == 0) node.yes = at;
    node.no = at + 1;
    forest.weights.push_back({ids[i], values[i]});
  }
}

}  // namespace

const Forest::Node& Forest::leaf(int32_t root, const double* row) const {
  const Node* node = &nodes[static_cast<size_t>(root)];
  while (node->test != Test::Leaf) {
    const double x = row[node->feature];
    bool taken = node->missing_is_true && std::isnan(x);
    switch (node->test) {
      case Test::LessEqual:
        taken |= x <= node->split;
        break;
      case Test::Less:
        taken |= x < node->split;
        break;
      case Test::GreaterEqual:
        taken |= x >= node->split;
        break;
      case Test::Greater:
        taken |= x > node->split;
        break;
      case Test::Equal:
        taken |= x == node->split;
        break;
      case Test::NotEqual:
        taken |= x != node->split;
        break;
      default: {
        const std::vector<double>& set = sets[static_cast<size_t>(node->set)];
        taken |= std::find(set.begin(), set.end(), x) != set.end();
      }
    }
    node = &nodes[static_cast<size_t>(taken ? node->yes : node->no)];
  }
  return *node;
}

Forest forest_of_ensemble(const OpaqueCall& call, int64_t targets) {
  const std::vector<int64_t> features = call.integers("nodes_featureids", {});
  const size_t count = features.size();
  const auto yes = integers(call, "nodes_truenodeids", count);
  const auto no = integers(call, "nodes_falsenodeids", count);
  const auto yes_leaf = integers(call, "nodes_trueleafs", count);
  const auto no_leaf = integers(call, "nodes_falseleafs", count);
  const std::vector<double> splits = reals_attribute(call, "nodes_splits");
  const std::vector<double> modes = reals_attribute(call, "nodes_modes");
  const std::vector<int64_t> missing = call.integers("nodes_missing_value_tracks_true", {});
  const std::vector<int64_t> leaf_targets = call.integers("leaf_targetids", {});
  const std::vector<double> leaf_weights = reals_attribute(call, "leaf_weights");
  require_length(call, "nodes_splits", splits.size(), count);
  require_length(call, "nodes_modes", modes.size(), count);
  require_length(call, "leaf_weights", leaf_weights.size(), leaf_targets.size());
  if (!missing.empty())
    require_length(call, "nodes_missing_value_tracks_true", missing.size(), count);
  const size_t leaves = leaf_targets.size();
  if (count > kMaxNodes || leaves > kMaxNodes) call.fail("it has too many nodes");
  Forest forest;
  const auto next = [&](int64_t id, int64_t is_leaf) {
    return is_leaf != 0 ? checked(call, id, leaves, "leaf") + static_cast<int32_t>(count)
                        : checked(call, id, count, "node");
  };
  for (size_t i = 0; i < count; ++i) {
    Forest::Node& node = forest.nodes.emplace_back();
    if (!(modes[i] >= 0 && modes[i] <= 6)) call.fail(fmt::format("node mode {}", modes[i]));
    node.split = splits[i];
    node.test = static_cast<Forest::Test>(static_cast<int>(modes[i]));
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    set_feature(call, forest, node, features[i]);
    node.yes = next(yes[i], yes_leaf[i]);
    node.no = next(no[i], no_leaf[i]);
  }
  read_members(call, forest);
  for (size_t i = 0; i < leaves; ++i) {
    checked(call, leaf_targets[i], static_cast<size_t>(targets), "target");
    Forest::Node& leaf = forest.nodes.emplace_back();
    leaf.yes = static_cast<int32_t>(i);
    leaf.no = leaf.yes + 1;
    forest.weights.push_back({leaf_targets[i], leaf_weights[i]});
  }
  for (const int64_t root : call.integers("tree_roots", {})) {
    forest.roots.push_back(checked(call, root, count, "root"));
  }
  check_acyclic(call, forest);
  return forest;
}

Forest forest_of_nodes(const OpaqueCall& call, const std::string& prefix, int64_t targets) {
  const std::vector<int64_t> trees = call.integers("nodes_treeids", {});
  const size_t count = trees.size();
  const auto ids = integers(call, "nodes_nodeids", count);
  const auto features = integers(call, "nodes_featureids", count);
  const auto yes = integers(call, "nodes_truenodeids", count);
  const auto no = integers(call, "nodes_falsenodeids", count);
  const std::vector<std::string> modes = words_attribute(call, "nodes_modes");
  const std::vector<double> splits = reals(call, "nodes_values");
  const std::vector<int64_t> missing = call.integers("nodes_missing_value_tracks_true", {});
  require_length(call, "nodes_modes", modes.size(), count);
  require_length(call, "nodes_values", splits.size(), count);
  if (!missing.empty())
    require_length(call, "nodes_missing_value_tracks_true", missing.size(), count);
  if (count > kMaxNodes) call.fail("it has too many nodes");
  Forest forest;
  NodeIndex index(count);
  std::unordered_set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int32_t>(i);
    if (!index.emplace(NodeKey{trees[i], ids[i]}, at).second) {
      call.fail(fmt::format("node {} of tree {} is there twice", ids[i], trees[i]));
    }
    // The first node of a tree is its root.
    if (seen.insert(trees[i]).second) forest.roots.push_back(at);
    Forest::Node& node = forest.nodes.emplace_back();
    node.test = test_named(call, modes[i]);
    if (node.test == Forest::Test::Leaf) continue;
    node.split = splits[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    set_feature(call, forest, node, features[i]);
  }
  const auto next = [&](size_t i, int64_t id) {
    const auto found = index.find({trees[i], id});
    if (found == index.end()) {
      call.fail(fmt::format("node {} of tree {} leads to node {}, which is not there", ids[i],
                            trees[i], id));
    }
    return found->second;
  };
  for (size_t i = 0; i < count; ++i) {
    Forest::Node& node = forest.nodes[i];
    if (node.test == Forest::Test::Leaf) continue;
    node.yes = next(i, yes[i]);
    node.no = next(i, no[i]);
  }
  read_weights(call, forest, index, prefix, targets);
  check_acyclic(call, forest);
  return forest;
}

}  // namespace redfuser::cpu
