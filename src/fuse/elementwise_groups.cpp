#include "fuse/elementwise_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "fuse/product.h"
#include "ir/depth.h"
#include "ir/polynomial.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/registry.h"
#include "ops/reindex.h"

namespace redfuser::fuse {

std::set<ir::ValueId> values_read(ir::Expr body) {
  std::set<ir::ValueId> values;
  visit(body, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Read && e->integer >= 0)
      values.insert(static_cast<ir::ValueId>(e->integer));
  });
  return values;
}

Demand::Demand(const NodeFacts& facts, const std::vector<Region>& regions,
               const std::set<ir::NodeId>& alone)
    : facts_(facts), regions_(regions), alone_(alone) {
  for (size_t r = 0; r < regions.size(); ++r) {
    for (ir::NodeId node : regions[r].owned) region_of_[node] = static_cast<int>(r);
  }
  for (ir::ValueId output : facts.graph().outputs) {
    outside_uses_.insert(output);
    need(output);
  }
}

int Demand::region_of(ir::NodeId node) const {
  auto found = region_of_.find(node);
  return found == region_of_.end() ? -1 : found->second;
}

void Demand::need(ir::ValueId first) {
  std::vector<ir::ValueId> stack{first};
  while (!stack.empty()) {
    const ir::ValueId value = stack.back();
    stack.pop_back();
    if (!needed_.insert(value).second) continue;
    const ir::NodeId node = facts_.producer(value);
    if (node < 0) continue;
    const int region = region_of(node);
    if (region < 0) {
      for (ir::ValueId read : facts_.reads(node)) {
        users_[read].insert(node);
        if (facts_.binds_by(node, read)) outside_uses_.insert(read);
        stack.push_back(read);
      }
      continue;
    }
    for (ir::ValueId read : regions_[static_cast<size_t>(region)].reads()) {
      outside_uses_.insert(read);
      stack.push_back(read);
    }
  }
}

bool Demand::used_only_by(ir::NodeId node, const std::set<ir::NodeId>& members) const {
  for (ir::ValueId output : facts_.graph().nodes[static_cast<size_t>(node)].outputs) {
    if (output == ir::kAbsent || !needed(output)) continue;
    if (outside_uses_.count(output)) return false;
    auto users = users_.find(output);
    if (users == users_.end()) continue;
    for (ir::NodeId user : users->second) {
      if (!members.count(user)) return false;
    }
  }
  return true;
}

namespace {

// The largest number of nodes of a step; longer chains gain nothing.
constexpr size_t kMaxNodes = 64;
// The largest number of values that a step reads: each is a parameter of its kernel.
constexpr size_t kMaxReads = 128;
// The written-out size of a map's body (ExprExtent). It may exceed kMaxFusedSize, since nothing is
// derived from it; samplers need more.
constexpr double kMaxMapSize = 0x1p24;
// Every element evaluates the whole body: all selects of a long Concat, for example.
constexpr size_t kMaxOperations = 4096;

// A value of fewer than this part of the step's elements is little beside them.
constexpr double kFewShare = 8;

class GroupBuilder {
 public:
  GroupBuilder(const NodeFacts& facts, const Demand& demand, ir::ValueId value)
      : facts_(facts), demand_(demand), graph_(facts.graph()), value_(value) {
    axes_ = ops::shared_index(graph_, value);
    owned_ = {graph_.values[static_cast<size_t>(value)].producer};
    body_ = lower();
  }

  // Takes in producers, last first: views and what unpacks 8-bit floats always, other nodes if only
  // this step uses them. Every trial lowers the body again, so nodes without reductions are tried
  // in batches, which grow after every success.
  void grow() {
    std::set<ir::NodeId> rejected;
    size_t count = 1;
    while (owned_.size() + views_.size() < kMaxNodes) {
      const Trial trial = next(has_reduction(body_) ? 1 : count, rejected);
      if (trial.nodes.empty()) return;
      if (absorb(trial)) {
        count *= 2;
      } else if (trial.nodes.size() == 1) {
        rejected.insert(trial.nodes[0]);
      } else {
        count = 1;
      }
    }
  }

  // Gives back nodes that narrow the results of nodes with epilogues of their own. The epilogues
  // write the narrower values: 8 bits in place of a sum's 32, and each value once, also where it is
  // repeated or joined to others. Values that are broadcast to far more elements have few bytes,
  // and stay.
  void release_narrowed() {
    const ir::NodeId source = has_reduction(body_) ? -1 : opaque_source();
    std::set<ir::NodeId> released;
    for (const ir::ValueId value : values_read(body_)) {
      const ir::NodeId node = facts_.producer(value);
      if (node < 0 || node == source || !has_epilogue(node)) continue;
      if (kFewShare * facts_.nominal_size(value) < facts_.nominal_size(value_)) continue;
      released.merge(narrowing_nodes(value));
    }
    if (released.empty()) return;
    for (const ir::NodeId node : released) owned_.erase(node);
    const std::set<ir::NodeId> owned = owned_;
    for (auto node = owned.rbegin(); node != owned.rend(); ++node) {
      const std::vector<ir::NodeId> readers = facts_.consumers_of(*node);
      const bool read = std::any_of(readers.begin(), readers.end(),
                                    [&](ir::NodeId reader) { return owned_.count(reader) > 0; });
      if (*node != root() && !read) owned_.erase(*node);
    }
    body_ = lower();
  }

  Step finish(bool fuse) {
    Step step;
    step.kind = kind();
    step.writes = {value_};
    std::set<ir::NodeId> nodes = members();
    std::set<ir::ValueId> reads = values_read(body_);
    const ir::NodeId source =
        fuse && std::holds_alternative<MapStep>(step.kind) ? opaque_source() : -1;
    if (source >= 0) {
      step.kind = epilogue_of(source);
      nodes.insert(source);
      reads.erase(result_of(source));
      reads.insert(facts_.reads(source).begin(), facts_.reads(source).end());
    }
    for (ir::NodeId node : nodes) {
      step.nodes.push_back(node);
      if (!facts_.binds(node)) continue;
      step.binds.push_back(node);
      for (ir::ValueId read : facts_.reads(node)) {
        const bool inside = nodes.count(facts_.producer(read)) > 0;
        if (!inside || facts_.binds_by(node, read)) reads.insert(read);
      }
    }
    step.reads.assign(reads.begin(), reads.end());
    return step;
  }

 private:
  ir::Expr lower() {
    const auto inlined = [&](ir::ValueId value) {
      const ir::NodeId node = facts_.producer(value);
      return value == value_ || (owned_.count(node) > 0 && node != root()) ||
             views_.count(node) > 0;
    };
    ops::Lowering lowering(graph_, inlined, &memo_);
    return lowering.element(value_, axes_);
  }
  std::set<ir::NodeId> members() const {
    std::set<ir::NodeId> nodes = owned_;
    nodes.insert(views_.begin(), views_.end());
    return nodes;
  }
  ir::NodeId root() const { return graph_.values[static_cast<size_t>(value_)].producer; }

  static bool has_reduction(ir::Expr body) {
    bool found = false;
    visit(body, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Reduce; });
    return found;
  }

  // Nodes to take in, and the members of the resulting step.
  struct Trial {
    std::vector<ir::NodeId> nodes;
    std::set<ir::NodeId> owned, views;
  };

  Trial next(size_t count, std::set<ir::NodeId>& rejected) const {
    Trial trial{{}, owned_, views_};
    std::set<ir::NodeId> members = this->members(), candidates;
    auto add_reads = [&](const std::set<ir::ValueId>& reads) {
      for (const ir::ValueId read : reads) {
        const ir::NodeId node = facts_.producer(read);
        if (node < 0 || !facts_.lowered(node) || demand_.region_of(node) >= 0) continue;
        if (!members.count(node) && !rejected.count(node)) candidates.insert(node);
      }
    };
    add_reads(values_read(body_));
    while (!candidates.empty() && trial.nodes.size() < count && members.size() < kMaxNodes) {
      const ir::NodeId node = *candidates.rbegin();
      candidates.erase(node);
      // Other steps compute the views again that this one does not own.
      const bool ours = demand_.used_only_by(node, trial.owned);
      if (!may_absorb(node, ours)) {
        rejected.insert(node);
        continue;
      }
      if (facts_.reduces(node) && !trial.nodes.empty()) break;
      trial.nodes.push_back(node);
      members.insert(node);
      (ours ? trial.owned : trial.views).insert(node);
      if (facts_.reduces(node)) break;
      add_reads(facts_.reads(node));
    }
    return trial;
  }

  bool may_absorb(ir::NodeId node, bool ours) const {
    // A node that binds run-time sizes stays a step of its own.
    if (facts_.binds(node) || demand_.alone(node)) return false;
    if (!ours && !facts_.view(node) && !facts_.unpacks(node)) return false;
    if (!facts_.reduces(node) || facts_.contracts(node)) return true;
    return ours && !facts_.contracts_integers(node) && finishes(node);
  }

  // The body is elementwise over the results of a reduction, each of which it uses once.
  bool finishes(ir::NodeId node) const {
    if (has_reduction(body_)) return false;
    const auto& outputs = graph_.nodes[static_cast<size_t>(node)].outputs;
    const auto& shape = graph_.values[static_cast<size_t>(value_)].shape;
    const bool one =
        outputs.size() == 1 && graph_.values[static_cast<size_t>(outputs[0])].shape == shape;
    bool in_place = one;
    visit(body_, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || !one || e->integer != outputs[0]) return;
      in_place = in_place && e->args == axes_;
    });
    return in_place;
  }

  bool absorb(const Trial& trial) {
    const bool was_product = as_product(graph_, value_, body_, axes_).has_value();
    const auto owned = std::exchange(owned_, trial.owned);
    const auto views = std::exchange(views_, trial.views);
    ir::Expr body = body_;
    const bool must_be_product = was_product || facts_.contracts(trial.nodes[0]);
    if (relower() && (!must_be_product || as_product(graph_, value_, body_, axes_))) return true;
    owned_ = owned;
    views_ = views;
    body_ = body;
    return false;
  }

  // False if the body is too large for one step.
  bool relower() {
    const size_t reads = values_read(body_).size();
    try {
      body_ = lower();
    } catch (const ir::ExprTooDeep&) {
      return false;
    }
    const ir::ExprExtent extent = expr_extent(body_);
    size_t operations = 0;
    visit(body_, [&](ir::Expr) { ++operations; });
    return extent.depth <= ir::kMaxFusedDepth && extent.size <= kMaxMapSize &&
           operations <= kMaxOperations && values_read(body_).size() <= std::max(reads, kMaxReads);
  }

  bool is_alias() const {
    if (body_->op != ir::ExprOp::Read) return false;
    const ir::Value& source = graph_.values[static_cast<size_t>(body_->integer)];
    const ir::Value& value = graph_.values[static_cast<size_t>(value_)];
    return source.dtype == value.dtype &&
           ops::same_order(*graph_.pool, source.shape, body_->args, value.shape, axes_);
  }

  ir::ValueId result_of(ir::NodeId node) const {
    return graph_.nodes[static_cast<size_t>(node)].outputs[0];
  }

  // The last node of those whose kernels can compute the body as their epilogue; -1: none.
  ir::NodeId opaque_source() const {
    const std::set<ir::NodeId> members = unshared_members();
    ir::NodeId last = -1;
    for (const ir::ValueId value : values_read(body_)) {
      const ir::NodeId node = facts_.producer(value);
      if (node > last && is_opaque_source(node, members)) last = node;
    }
    return last;
  }

  // Members that no other step computes as well.
  std::set<ir::NodeId> unshared_members() const {
    std::set<ir::NodeId> unshared;
    for (const ir::ValueId output : graph_.nodes[static_cast<size_t>(root())].outputs) {
      if (output != ir::kAbsent && output != value_ && demand_.needed(output)) return unshared;
    }
    unshared.insert(root());
    for (auto node = owned_.rbegin(); node != owned_.rend(); ++node) {
      if (demand_.used_only_by(*node, unshared)) unshared.insert(*node);
    }
    return unshared;
  }

  bool has_epilogue(ir::NodeId node) const {
    if (facts_.lowered(node) || facts_.binds(node) || demand_.region_of(node) >= 0) return false;
    return ops::takes_epilogue(graph_.nodes[static_cast<size_t>(node)]);
  }

  // Those of this step that make a narrower value of `value`, element by element and one after the
  // other.
  std::set<ir::NodeId> narrowing_nodes(ir::ValueId value) const {
    const ir::Value& first = graph_.values[static_cast<size_t>(value)];
    std::set<ir::NodeId> nodes, narrowing;
    for (ir::ValueId at = value; facts_.consumers(at).size() == 1 && !facts_.is_output(at);) {
      const ir::NodeId node = facts_.consumers(at)[0];
      if (node == root() || !owned_.count(node) || facts_.reduces(node) || facts_.view(node)) break;
      at = result_of(node);
      const ir::Value& next = graph_.values[static_cast<size_t>(at)];
      if (next.shape != first.shape) break;
      nodes.insert(node);
      if (size_of(next.dtype) < size_of(first.dtype)) narrowing = nodes;
    }
    return narrowing;
  }

  // Only `members` read the node's result, and only the element in its own place.
  bool is_opaque_source(ir::NodeId node, const std::set<ir::NodeId>& members) const {
    if (!has_epilogue(node)) return false;
    const ir::Value& result = graph_.values[static_cast<size_t>(result_of(node))];
    if (result.shape != graph_.values[static_cast<size_t>(value_)].shape) return false;
    bool in_place = demand_.used_only_by(node, members);
    visit(body_, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer != result_of(node)) return;
      in_place = in_place && e->args == axes_;
    });
    return in_place;
  }

  OpaqueStep epilogue_of(ir::NodeId node) const {
    ir::ExprPool& pool = *graph_.pool;
    const ir::ValueId result = result_of(node);
    ir::Expr body = pool.rewrite(body_, [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Read || e->integer != result) return nullptr;
      return pool.leaf(ir::LeafKind::Product, 0, e->dtype);
    });
    return {node, OpaqueStep::Epilogue{value_, axes_, body}};
  }

  StepKind kind() const {
    if (!has_reduction(body_)) {
      if (is_alias()) return AliasStep{value_, static_cast<ir::ValueId>(body_->integer)};
      return MapStep{axes_, {{value_, body_}}};
    }
    if (auto product = as_product(graph_, value_, body_, axes_)) return *product;
    return ReduceStep{value_, axes_, body_};
  }

  const NodeFacts& facts_;
  const Demand& demand_;
  const ir::Graph& graph_;
  ir::ValueId value_;
  std::vector<ir::Expr> axes_;
  std::set<ir::NodeId> owned_, views_;
  ir::Expr body_ = nullptr;
  ops::LoweringMemo memo_;
};

}  // namespace

Step make_group(const NodeFacts& facts, const Demand& demand, ir::ValueId value, bool fuse) {
  GroupBuilder builder(facts, demand, value);
  fuse = fuse && !demand.alone(facts.producer(value));
  if (fuse) {
    builder.grow();
    builder.release_narrowed();
  }
  return builder.finish(fuse);
}

}  // namespace redfuser::fuse
