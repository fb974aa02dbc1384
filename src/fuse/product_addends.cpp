#include "fuse/product_addends.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/contraction.h"
#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::fuse {
namespace {

constexpr int kMaxAdded = 2;  // a vector and a tensor

// The addends of a product so far.
struct Added {
  int vectors = 0, tensors = 0;
};

bool multiplies_constant(const NodeFacts& facts, ir::NodeId node) {
  if (!facts.contracts(node)) return false;
  return std::any_of(facts.reads(node).begin(), facts.reads(node).end(), [&](ir::ValueId read) {
    const ir::Value& value = facts.graph().values[static_cast<size_t>(read)];
    return value.is_constant() && value.shape.size() == 2;
  });
}

// The node adds two elements at one index, one of them a product that nothing else uses.
bool adds_to_product(const NodeFacts& facts, ir::NodeId id, Added& added, int most = kMaxAdded) {
  if (most == 0) return false;
  const ir::Graph& graph = facts.graph();
  const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
  if (!facts.lowered(id) || facts.reduces(id) || node.outputs.size() != 1) return false;
  const ir::ValueId output = node.outputs[0];
  const ir::Value& value = graph.values[static_cast<size_t>(output)];
  const std::vector<ir::Expr> axes = ops::shared_index(graph, output);
  ops::Lowering lowering(graph, [output](ir::ValueId v) { return v == output; });
  ir::Expr sum = without_float_casts(lowering.element(output, axes));
  if (sum->op != ir::ExprOp::Add || sum->args.size() != 2) return false;
  ir::Expr terms[2];
  for (size_t i = 0; i < 2; ++i) {
    terms[i] = without_float_casts(sum->args[i]);
    if (terms[i]->op != ir::ExprOp::Read) return false;
  }
  for (size_t i = 0; i < 2; ++i) {
    const auto product = static_cast<ir::ValueId>(terms[i]->integer);
    const ir::NodeId producer = facts.producer(product);
    if (producer < 0 || terms[i]->args != axes || facts.is_output(product)) continue;
    if (facts.consumers(product).size() != 1) continue;
    Added before = added;
    if (!multiplies_constant(facts, producer) &&
        !adds_to_product(facts, producer, before, most - 1)) {
      continue;
    }
    const ir::Value& other = graph.values[static_cast<size_t>(terms[1 - i]->integer)];
    if (other.is_constant() && other.shape.size() == 1) {
      ++before.vectors;
    } else if (terms[1 - i]->args == axes && other.dtype == value.dtype) {
      ++before.tensors;
    } else {
      continue;
    }
    added = before;
    return added.vectors <= 1 && added.tensors <= 1;
  }
  return false;
}

// Elementwise nodes over products and convolutions of integers.
class IntegerFinish {
 public:
  explicit IntegerFinish(const NodeFacts& facts) : facts_(facts) {}

  bool has(ir::NodeId id) { return facts_.has_integer_products() && has(id, 0); }

 private:
  static constexpr int kMaxDepth = 16;

  bool has(ir::NodeId id, int depth) {
    const auto known = known_.find(id);
    if (known != known_.end()) return known->second;
    return known_[id] = depth < kMaxDepth && finishes(id, depth);
  }

  bool finishes(ir::NodeId id, int depth) {
    const ir::Graph& graph = facts_.graph();
    const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
    if (!facts_.lowered(id) || facts_.reduces(id) || node.outputs.size() != 1) return false;
    const ir::ValueId output = node.outputs[0];
    const std::vector<ir::Expr> axes = ops::shared_index(graph, output);
    ops::Lowering lowering(graph, [output](ir::ValueId v) { return v == output; });
    int products = 0, tensors = 0, others = 0;
    visit(lowering.element(output, axes), [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read) return;
      const auto value = static_cast<ir::ValueId>(e->integer);
      const bool same = e->args == axes;
      if (same && multiplied(facts_.producer(value), depth)) {
        ++products;
      } else if (same && !axes.empty()) {
        ++tensors;
      } else if (!along_one_axis(graph.values[static_cast<size_t>(value)])) {
        ++others;
      }
    });
    return products > 0 && tensors <= 1 && others == 0;
  }

  bool multiplied(ir::NodeId producer, int depth) {
    if (producer < 0) return false;
    if (facts_.contracts_integers(producer)) return multiplies_constant(facts_, producer);
    if (facts_.convolves_integers(producer)) return true;
    return has(producer, depth + 1);
  }

  // A vector, or a constant of its elements under more dimensions, as the bias of a convolution is.
  static bool along_one_axis(const ir::Value& value) {
    const auto axes = std::count_if(value.shape.begin(), value.shape.end(),
                                    [](ir::Expr size) { return !size->is_constant(1); });
    return value.shape.size() <= 1 || (value.is_constant() && axes <= 1);
  }

  const NodeFacts& facts_;
  std::map<ir::NodeId, bool> known_;
};

}  // namespace

bool completes_product(const NodeFacts& facts, ir::NodeId node) {
  Added added;
  return adds_to_product(facts, node, added) || IntegerFinish(facts).has(node);
}

}  // namespace redfuser::fuse
