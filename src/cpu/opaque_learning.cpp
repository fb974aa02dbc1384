// Operators of ai.onnx.ml: dictionaries and ensembles of trees.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque_kernels.h"

namespace redfuser {
namespace {

Tensor tensor_attribute(const OpaqueCall& call, const std::string& name) {
  const auto* tensor = std::get_if<Tensor>(&call.node().attributes.at(name));
  if (tensor == nullptr) call.fail(fmt::format("attribute {} is no tensor", name));
  return *tensor;
}

// The list of keys, values or defaults named `prefix` + type, as a tensor; undefined without one.
Tensor list_attribute(const OpaqueCall& call, const std::string& prefix) {
  if (call.has(prefix + "tensor")) return tensor_attribute(call, prefix + "tensor");
  if (call.has(prefix + "strings")) {
    const auto& list =
        std::get<std::vector<std::string>>(call.node().attributes.at(prefix + "strings"));
    return Tensor::strings({static_cast<int64_t>(list.size())}, list);
  }
  if (call.has(prefix + "int64s")) {
    const auto list = call.integers(prefix + "int64s", {});
    Tensor tensor(DType::Int64, {static_cast<int64_t>(list.size())});
    std::copy(list.begin(), list.end(), tensor.as<int64_t>());
    return tensor;
  }
  if (call.has(prefix + "floats")) {
    const auto& list = std::get<std::vector<float>>(call.node().attributes.at(prefix + "floats"));
    Tensor tensor(DType::Float32, {static_cast<int64_t>(list.size())});
    std::copy(list.begin(), list.end(), tensor.as<float>());
    return tensor;
  }
  return {};
}

Tensor default_value(const OpaqueCall& call, DType dtype) {
  if (call.has("default_tensor")) return tensor_attribute(call, "default_tensor");
  if (dtype == DType::String) return Tensor::strings({1}, {call.text("default_string", "_Unused")});
  Tensor tensor(dtype, {1});
  const double real = call.real("default_float", -0.0);
  const int64_t whole = call.integer("default_int64", -1);
  dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      *tensor.as<T>() = static_cast<T>(whole);
    } else {
      *tensor.as<T>() = static_cast<T>(real);
    }
  });
  return tensor;
}

// Elements as bytes, so that one map serves every type. NaN is one key, as are both zeros.
std::string key_of(const Tensor& tensor, int64_t i) {
  const size_t width = size_of(tensor.dtype());
  std::string key(tensor.as<char>() + static_cast<size_t>(i) * width, width);
  if (!is_float(tensor.dtype())) return key;
  double value = 0;
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    value = static_cast<double>(tensor.as<T>()[i]);
  });
  if (std::isnan(value)) return "nan";
  return value == 0 ? "zero" : key;
}

// The arrays that describe the trees: nodes, then leaves.
struct Trees {
  std::vector<int64_t> roots, features, modes, true_ids, false_ids, true_leaf, false_leaf, missing;
  std::vector<double> splits, hits, weights, members;
  std::vector<int64_t> leaf_targets;
};

enum Mode { LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual, Member };

std::vector<double> reals_attribute(const OpaqueCall& call, const std::string& name) {
  std::vector<double> values;
  if (!call.has(name)) return values;
  const Tensor tensor = tensor_attribute(call, name);
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.size(); ++i)
      values.push_back(static_cast<double>(tensor.as<T>()[i]));
  });
  return values;
}

Trees trees_of(const OpaqueCall& call) {
  Trees t;
  t.roots = call.integers("tree_roots", {});
  t.features = call.integers("nodes_featureids", {});
  t.true_ids = call.integers("nodes_truenodeids", {});
  t.false_ids = call.integers("nodes_falsenodeids", {});
  t.true_leaf = call.integers("nodes_trueleafs", {});
  t.false_leaf = call.integers("nodes_falseleafs", {});
  t.missing = call.integers("nodes_missing_value_tracks_true", {});
  t.leaf_targets = call.integers("leaf_targetids", {});
  t.splits = reals_attribute(call, "nodes_splits");
  t.weights = reals_attribute(call, "leaf_weights");
  t.members = reals_attribute(call, "membership_values");
  if (call.has("nodes_modes")) {
    const Tensor modes = tensor_attribute(call, "nodes_modes");
    for (int64_t i = 0; i < modes.size(); ++i) t.modes.push_back(modes.as<uint8_t>()[i]);
  }
  const size_t nodes = t.features.size();
  const bool whole =
      t.modes.size() == nodes && t.true_ids.size() == nodes && t.false_ids.size() == nodes &&
      t.true_leaf.size() == nodes && t.false_leaf.size() == nodes && t.splits.size() == nodes &&
      t.weights.size() == t.leaf_targets.size() && (t.missing.empty() || t.missing.size() == nodes);
  if (!whole) call.fail("the lists of nodes or of leaves differ in length");
  return t;
}

// The members of each membership node: lists that NaN ends, in the order of the nodes.
std::vector<std::vector<double>> memberships(const OpaqueCall& call, const Trees& trees) {
  std::vector<std::vector<double>> sets(trees.features.size());
  size_t at = 0;
  for (size_t n = 0; n < sets.size(); ++n) {
    if (trees.modes[n] != Member) continue;
    while (at < trees.members.size() && !std::isnan(trees.members[at])) {
      sets[n].push_back(trees.members[at++]);
    }
    if (at == trees.members.size()) call.fail("membership_values has too few lists");
    ++at;
  }
  return sets;
}

class TreeWalker {
 public:
  TreeWalker(const OpaqueCall& call, const Trees& trees)
      : call_(call), trees_(trees), sets_(memberships(call, trees)) {}

  // The leaf that a row of `width` features comes to.
  size_t leaf(int64_t root, const double* row, int64_t width) const {
    int64_t node = root;
    // A walk visits no node twice; a longer one goes in circles.
    for (size_t steps = 0; steps <= trees_.features.size(); ++steps) {
      const auto n = index(node, trees_.features.size(), "node");
      const int64_t feature = trees_.features[n];
      if (feature < 0 || feature >= width)
        call_.fail(fmt::format("feature {} of {}", feature, width));
      const bool taken = test(n, row[feature]);
      node = taken ? trees_.true_ids[n] : trees_.false_ids[n];
      if ((taken ? trees_.true_leaf[n] : trees_.false_leaf[n]) != 0) {
        return index(node, trees_.weights.size(), "leaf");
      }
    }
    call_.fail("a tree has a cycle");
  }

 private:
  size_t index(int64_t i, size_t size, const char* what) const {
    if (i < 0 || i >= static_cast<int64_t>(size))
      call_.fail(fmt::format("{} {} of {}", what, i, size));
    return static_cast<size_t>(i);
  }

  bool test(size_t n, double x) const {
    if (std::isnan(x) && !trees_.missing.empty() && trees_.missing[n] != 0) return true;
    const double split = trees_.splits[n];
    switch (trees_.modes[n]) {
      case LessEqual:
        return x <= split;
      case Less:
        return x < split;
      case GreaterEqual:
        return x >= split;
      case Greater:
        return x > split;
      case Equal:
        return x == split;
      case NotEqual:
        return x != split;
      case Member:
        return std::find(sets_[n].begin(), sets_[n].end(), x) != sets_[n].end();
      default:
        call_.fail(fmt::format("node mode {}", trees_.modes[n]));
    }
  }

  const OpaqueCall& call_;
  const Trees& trees_;
  std::vector<std::vector<double>> sets_;
};

// 0: none, 1: softmax, 2: logistic, 3: softmax of what is not zero, 4: probit
void transform(const OpaqueCall& call, int64_t kind, double* row, int64_t n) {
  if (kind == 0 || n == 0) return;
  if (kind == 2) {
    for (int64_t i = 0; i < n; ++i) row[i] = 1 / (1 + std::exp(-row[i]));
    return;
  }
  if (kind != 1 && kind != 3) call.fail(fmt::format("post_transform {} is not supported", kind));
  const double largest = *std::max_element(row, row + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    row[i] = kind == 3 && row[i] == 0 ? 0 : std::exp(row[i] - largest);
    sum += row[i];
  }
  for (int64_t i = 0; i < n && sum > 0; ++i) row[i] /= sum;
}

}  // namespace

void run_label_encoder(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor keys = list_attribute(call, "keys_"), values = list_attribute(call, "values_");
  if (!keys.defined() || !values.defined() || keys.size() != values.size() ||
      keys.dtype() != x.dtype()) {
    call.fail("keys, values and input do not fit each other");
  }
  const Tensor fallback = default_value(call, values.dtype());
  if (fallback.dtype() != values.dtype() || fallback.size() != 1) call.fail("the default value");
  std::map<std::string, int64_t> table;
  for (int64_t i = 0; i < keys.size(); ++i) table.emplace(key_of(keys, i), i);
  Tensor& y = call.allocate(0, x.dims());
  const size_t width = size_of(y.dtype());
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto found = table.find(key_of(x, i));
    const char* from = found == table.end()
                           ? fallback.as<char>()
                           : values.as<char>() + static_cast<size_t>(found->second) * width;
    std::memcpy(y.as<char>() + static_cast<size_t>(i) * width, from, width);
  }
}

void run_tree_ensemble(OpaqueCall& call) {
  const std::vector<double> x = call.reals_of(0);
  const int64_t rows = call.dims(0)[0], width = call.dims(0)[1];
  const int64_t targets = call.integer("n_targets", 1);
  const int64_t aggregate = call.integer("aggregate_function", 1);  // average, sum, min, max
  const Trees trees = trees_of(call);
  const TreeWalker walker(call, trees);
  Tensor& y = call.allocate(0, {rows, targets});
  std::vector<double> out(static_cast<size_t>(targets));
  for (int64_t r = 0; r < rows; ++r) {
    const double start = aggregate == 2 ? INFINITY : aggregate == 3 ? -INFINITY : 0;
    std::fill(out.begin(), out.end(), start);
    for (const int64_t root : trees.roots) {
      const size_t leaf = walker.leaf(root, x.data() + r * width, width);
      const int64_t target = trees.leaf_targets[leaf];
      if (target < 0 || target >= targets)
        call.fail(fmt::format("target {} of {}", target, targets));
      double& at = out[static_cast<size_t>(target)];
      const double weight = trees.weights[leaf];
      at = aggregate == 2   ? std::min(at, weight)
           : aggregate == 3 ? std::max(at, weight)
                            : at + weight;
    }
    if (aggregate == 0 && !trees.roots.empty()) {
      for (double& value : out) value /= static_cast<double>(trees.roots.size());
    }
    transform(call, call.integer("post_transform", 0), out.data(), targets);
    dispatch(y.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t t = 0; t < targets; ++t) {
        y.as<T>()[r * targets + t] = static_cast<T>(out[static_cast<size_t>(t)]);
      }
    });
  }
}

}  // namespace redfuser
