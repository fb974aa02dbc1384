// Concatenated values whose parts go separate ways in the end (an attention sink beside the
// scores):
//     f([a, b]) = [f(a), f(b)]          f pointwise along the axis
//     ⊕[a, b]   = (⊕a) ⊕ (⊕b)           a reduction over the axis
//     [a, b] sliced to a = a
// so that reductions and products over a's length meet.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace redfuser::passes {
namespace {

enum class Use { Pointwise, Reduction, Part, None };

// What a node makes of the parts of one concatenation along `axis`.
struct Carried {
  Use use = Use::None;
  ir::Reduction reduction = ir::Reduction::Sum;
  size_t part = 0;
};

class Splitter {
 public:
  explicit Splitter(ir::Graph& graph) : graph_(graph), pool_(*graph.pool) {}

  bool run() {
    const auto consumers = graph_.consumers();
    std::vector<char> dead(graph_.nodes.size());
    for (size_t n = 0; n < dead.size(); ++n) {
      if (dead[n] || !find(static_cast<ir::NodeId>(n), consumers)) continue;
      for (auto& [node, carried] : nodes_) dead[static_cast<size_t>(node)] = 1;
      dead[n] = 1;
      rewrite(static_cast<ir::NodeId>(n));
    }
    if (insertions_.empty()) return false;
    rebuild(dead);
    return true;
  }

 private:
  // Follows the concatenation of node `start`; true if every use has a form here and one takes a
  // part.
  bool find(ir::NodeId start, const std::vector<std::vector<ir::NodeId>>& consumers) {
    const ir::Node& node = graph_.nodes[static_cast<size_t>(start)];
    if (!find_parts(start)) return false;
    nodes_.clear();
    values_ = {node.outputs[0]};
    bool parted = false;
    for (size_t i = 0; i < values_.size(); ++i) {
      const ir::ValueId value = values_[i];
      if (is_output(value)) return false;
      for (ir::NodeId user : consumers[static_cast<size_t>(value)]) {
        const Carried carried = use_of(user);
        if (carried.use == Use::None) return false;
        parted |= carried.use == Use::Part;
        nodes_[user] = carried;
        const ir::ValueId result = graph_.nodes[static_cast<size_t>(user)].outputs[0];
        if (carried.use == Use::Part && is_output(result)) return false;
        if (carried.use == Use::Pointwise && !carries(result)) values_.push_back(result);
      }
    }
    return parted;
  }

  bool is_output(ir::ValueId value) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
  }
  bool carries(ir::ValueId value) const {
    return std::find(values_.begin(), values_.end(), value) != values_.end();
  }

  bool find_parts(ir::NodeId start) {
    const ir::Node& node = graph_.nodes[static_cast<size_t>(start)];
    if (node.op != "Concat" || !node.domain.empty() || node.inputs.size() < 2) return false;
    const ops::NodeView view(graph_, node);
    axis_ = static_cast<size_t>(view.axis(view.integer("axis", 0), view.rank(0)));
    parts_ = node.inputs;
    starts_ = {pool_.integer(0)};
    for (ir::ValueId part : parts_)
      starts_.push_back(pool_.add(starts_.back(), size_of_part(part)));
    total_ = starts_.back();
    return true;
  }
  ir::Expr size_of_part(ir::ValueId part) const {
    return graph_.values[static_cast<size_t>(part)].shape[axis_];
  }

  Carried use_of(ir::NodeId user) {
    const ir::Node& node = graph_.nodes[static_cast<size_t>(user)];
    if (node.outputs.size() != 1 || !node.def || !node.def->lower || node.def->random) return {};
    const ir::ValueId result = node.outputs[0];
    const ir::Value& value = graph_.values[static_cast<size_t>(result)];
    if (value.is_constant() || value.has_elements || value.indexed) return {};
    std::vector<ir::Expr> axes;
    for (ir::Expr size : value.shape) {
      axes.push_back(pool_.shared_axis(fmt::format("index{}", axes.size()), size));
    }
    ops::Lowering lowering(graph_, [&](ir::ValueId inlined) { return inlined == result; });
    ir::Expr body = lowering.element(result, axes);
    if (body->op == ir::ExprOp::Reduce) return reduction_of(body);
    return re_indexed(body, axes, value);
  }

  Carried reduction_of(ir::Expr body) {
    const ir::Reduction kind = body->reduction;
    const bool combines = kind == ir::Reduction::Sum || kind == ir::Reduction::Max ||
                          kind == ir::Reduction::Min || kind == ir::Reduction::Prod;
    if (!combines || body->args.size() > 2 || body->extent() != total_) return {};
    if (!reads_along(body->body(), body->bound_axis(), nullptr)) return {};
    return {Use::Reduction, kind, 0};
  }

  // Every carried value is read at `along` in the axis, and nothing else depends on `along`.
  bool reads_along(ir::Expr body, ir::Expr along, ir::Expr offset) {
    bool fits = true;
    std::function<void(ir::Expr)> go = [&](ir::Expr e) {
      if (!fits || !e->depends_on(along)) return;
      if (e == along) {
        fits = false;
        return;
      }
      if (e->op != ir::ExprOp::Read || !carries(static_cast<ir::ValueId>(e->integer))) {
        for (ir::Expr arg : e->args) go(arg);
        return;
      }
      for (size_t d = 0; d < e->args.size(); ++d) {
        ir::Expr expected = offset && d == axis_ ? pool_.add(along, offset) : along;
        if (d == axis_ ? e->args[d] != expected : e->args[d]->depends_on(along)) fits = false;
      }
    };
    go(body);
    if (!fits) return false;
    visit(body, [&](ir::Expr e) {
      const bool carried =
          e->op == ir::ExprOp::Read && carries(static_cast<ir::ValueId>(e->integer));
      if (carried && !e->args[axis_]->depends_on(along)) fits = false;
    });
    return fits;
  }

  Carried re_indexed(ir::Expr body, const std::vector<ir::Expr>& axes, const ir::Value& value) {
    if (axes.size() <= axis_) return {};
    ir::Expr along = axes[axis_];
    if (value.shape[axis_] == total_) {
      return reads_along(body, along, nullptr) ? Carried{Use::Pointwise, {}, 0} : Carried{};
    }
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (value.shape[axis_] != size_of_part(parts_[p]) || body->op != ir::ExprOp::Read) continue;
      if (!reads_along(body, along, starts_[p])) continue;
      const ir::Value& whole = graph_.values[static_cast<size_t>(body->integer)];
      bool same = whole.shape.size() == axes.size();
      for (size_t d = 0; same && d < axes.size(); ++d) {
        same &= d == axis_ || body->args[d] == axes[d] || value.shape[d]->is_constant(1);
      }
      for (size_t d = 0; same && d < axes.size(); ++d) {
        same &= d == axis_ || whole.shape[d] == value.shape[d];
      }
      if (same) return {Use::Part, {}, p};
    }
    return {};
  }

  void rewrite(ir::NodeId start) {
    std::map<ir::ValueId, std::vector<ir::ValueId>> split;
    split[graph_.nodes[static_cast<size_t>(start)].outputs[0]] = parts_;
    for (const auto& [id, carried] : nodes_) {
      const ir::Node node = graph_.nodes[static_cast<size_t>(id)];
      const ir::ValueId result = node.outputs[0];
      if (carried.use == Use::Part) {
        ir::ValueId whole = ir::kAbsent;
        for (ir::ValueId input : node.inputs) {
          if (split.count(input)) whole = input;
        }
        replaced_[result] = split.at(whole)[carried.part];
        continue;
      }
      std::vector<ir::ValueId> results;
      for (size_t p = 0; p < parts_.size(); ++p) {
        ir::Node clone = node;
        for (ir::ValueId& input : clone.inputs) {
          auto found = split.find(input);
          if (found != split.end()) input = found->second[p];
        }
        results.push_back(add(id, std::move(clone), result, fmt::format("part{}", p)));
      }
      if (carried.use == Use::Pointwise) {
        split[result] = results;
      } else {
        combine(id, node, carried.reduction, results);
      }
    }
  }

  // ⊕ of the parts' results, as the node's own result.
  void combine(ir::NodeId at, const ir::Node& from, ir::Reduction reduction,
               std::vector<ir::ValueId> results) {
    const char* name = reduction == ir::Reduction::Sum   ? "Add"
                       : reduction == ir::Reduction::Max ? "Max"
                       : reduction == ir::Reduction::Min ? "Min"
                                                         : "Mul";
    ir::ValueId total = results[0];
    for (size_t p = 1; p < results.size(); ++p) {
      ir::Node node;
      node.op = name;
      node.opset = std::max(from.opset, 13);
      node.def = ops::find_op("", name, node.opset);
      RF_CHECK(node.def, "no operator {}", name);
      node.name = from.name;
      node.source = from.source;
      node.inputs = {total, results[p]};
      total = add(at, std::move(node), from.outputs[0], fmt::format("until{}", p));
    }
    replaced_[from.outputs[0]] = total;
  }

  // A node to be put where node `at` is; its output is named after `like`.
  ir::ValueId add(ir::NodeId at, ir::Node node, ir::ValueId like, const std::string& suffix) {
    const std::string name = graph_.values[static_cast<size_t>(like)].name;
    const ir::ValueId output =
        graph_.add_value(fmt::format("{}.{}#{}", name, suffix, graph_.values.size()));
    node.outputs = {output};
    const auto id = static_cast<ir::NodeId>(graph_.nodes.size());
    graph_.values[static_cast<size_t>(output)].producer = id;
    graph_.nodes.push_back(std::move(node));
    ops::infer_node(graph_, id);
    insertions_[at].push_back(id);
    return output;
  }

  // Puts the new nodes in their places, and lets readers read what replaces the old values.
  void rebuild(std::vector<char> dead) {
    std::vector<ir::Node> nodes;
    for (size_t n = 0; n < dead.size(); ++n) {
      if (auto found = insertions_.find(static_cast<ir::NodeId>(n)); found != insertions_.end()) {
        for (ir::NodeId id : found->second) {
          nodes.push_back(std::move(graph_.nodes[static_cast<size_t>(id)]));
        }
      }
      if (!dead[n]) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
    for (ir::Value& value : graph_.values) value.producer = -1;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (ir::ValueId output : graph_.nodes[n].outputs) {
        if (output != ir::kAbsent) {
          graph_.values[static_cast<size_t>(output)].producer = static_cast<ir::NodeId>(n);
        }
      }
    }
    Rewrite rewrite(graph_);
    for (auto [from, to] : replaced_) {
      const bool done = rewrite.replace(from, to);
      RF_CHECK(done, "value {} cannot be replaced", from);
    }
    rewrite.apply();
  }

  ir::Graph& graph_;
  ir::ExprPool& pool_;
  size_t axis_ = 0;
  std::vector<ir::ValueId> parts_, values_;
  std::vector<ir::Expr> starts_;
  ir::Expr total_ = nullptr;
  std::map<ir::NodeId, Carried> nodes_;
  std::map<ir::NodeId, std::vector<ir::NodeId>> insertions_;
  std::map<ir::ValueId, ir::ValueId> replaced_;
};

}  // namespace

bool split_concatenation(ir::Graph& graph) { return Splitter(graph).run(); }

}  // namespace redfuser::passes
