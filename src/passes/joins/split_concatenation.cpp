// Concatenated values of which one part is used in the end (scores next to an attention sink):
//     f([a, b]) = [f(a), f(b)]          f pointwise along the axis
//     ⊕[a, b]   = (⊕a) ⊕ (⊕b)           a reduction over the axis
//     [a, b] sliced to a = a
// so that reductions and products over a's length can fuse.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/reindex.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

enum class Use { Pointwise, Reduction, Part, None };

// A node's results for the parts of one concatenation along `axis`.
struct Carried {
  Use use = Use::None;
  ir::Reduction reduction = ir::Reduction::Sum;
  size_t part = 0;
};

class Splitter {
 public:
  explicit Splitter(ir::Graph& graph) : graph_(graph), pool_(*graph.pool), editor_(graph) {}

  bool run() {
    const auto consumers = graph_.consumers();
    std::vector<char> dead(graph_.nodes.size());
    for (size_t n = 0; n < dead.size(); ++n) {
      if (dead[n] || !find(static_cast<ir::NodeId>(n), consumers)) continue;
      for (auto& [node, carried] : nodes_) dead[static_cast<size_t>(node)] = 1;
      dead[n] = 1;
      rewrite(static_cast<ir::NodeId>(n));
    }
    if (editor_.empty()) return false;
    for (size_t n = 0; n < dead.size(); ++n) {
      if (dead[n]) dead_.push_back(graph_.nodes[n].outputs[0]);
    }
    rebuild();
    return true;
  }

 private:
  // Follows the concatenation at node `start`; true if every use can be split and one is a slice of
  // a part.
  bool find(ir::NodeId start, const std::vector<std::vector<ir::NodeId>>& consumers) {
    if (!find_parts(start)) return false;
    nodes_.clear();
    values_ = {graph_.nodes[static_cast<size_t>(start)].outputs[0]};
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

  // Whether the node lowers to the concatenation of its inputs along an axis.
  bool find_parts(ir::NodeId start) {
    const ir::Node& node = graph_.nodes[static_cast<size_t>(start)];
    if (node.inputs.size() < 2 || node.outputs.size() != 1) return false;
    if (!node.def || !node.def->lower || node.def->random) return false;
    const std::vector<ir::Expr>& whole = shape_of(node.outputs[0]);
    for (ir::ValueId input : node.inputs) {
      if (input == ir::kAbsent || shape_of(input).size() != whole.size()) return false;
    }
    parts_ = node.inputs;
    for (axis_ = 0; axis_ < whole.size(); ++axis_) {
      if (!has_parts_along_axis(whole[axis_]) || !have_sizes_beside_axis(whole)) continue;
      if (is_join(node.outputs[0])) return true;
    }
    return false;
  }

  // Whether each part has the sizes of the whole beside the axis, by the same expressions: results
  // for the parts then have the shapes of the results that they replace.
  bool have_sizes_beside_axis(const std::vector<ir::Expr>& whole) const {
    for (ir::ValueId part : parts_) {
      for (size_t d = 0; d < whole.size(); ++d) {
        if (d != axis_ && shape_of(part)[d] != whole[d]) return false;
      }
    }
    return true;
  }

  // Whether the sizes of the parts, each smaller than the whole, add up along the axis; sets their
  // starts.
  bool has_parts_along_axis(ir::Expr whole) {
    starts_ = {pool_.integer(0)};
    for (ir::ValueId part : parts_) {
      if (size_of_part(part) == whole) return false;
      starts_.push_back(pool_.add(starts_.back(), size_of_part(part)));
    }
    total_ = starts_.back();
    return total_ == whole;
  }

  bool is_join(ir::ValueId result) {
    std::vector<ir::Expr> sizes;
    for (ir::ValueId part : parts_) sizes.push_back(size_of_part(part));
    std::vector<ir::Expr> index = ops::shared_axes(graph_, result);
    for (size_t d = 0; d < index.size(); ++d) {
      if (shape_of(result)[d]->is_constant(1)) index[d] = pool_.integer(0);
    }
    ops::Lowering lowering(graph_, [&](ir::ValueId inlined) { return inlined == result; });
    return lowering.element(result, index) ==
           ops::joined_element(pool_, sizes, axis_, index,
                               [&](size_t part, std::vector<ir::Expr> at) {
                                 return lowering.element(parts_[part], std::move(at));
                               });
  }

  const std::vector<ir::Expr>& shape_of(ir::ValueId value) const {
    return graph_.values[static_cast<size_t>(value)].shape;
  }
  ir::Expr size_of_part(ir::ValueId part) const { return shape_of(part)[axis_]; }

  Carried use_of(ir::NodeId user) {
    const ir::Node& node = graph_.nodes[static_cast<size_t>(user)];
    if (node.outputs.size() != 1 || !node.def || !node.def->lower || node.def->random) return {};
    const ir::ValueId result = node.outputs[0];
    const ir::Value& value = graph_.values[static_cast<size_t>(result)];
    if (value.is_constant() || value.has_elements || value.indexed) return {};
    const std::vector<ir::Expr> axes = ops::shared_axes(graph_, result);
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

  // Every split value is read at `along` in the axis, and nothing else depends on `along`.
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
      ir::Node node = ops::new_node_for(from, name, {total, results[p]});
      total = add(at, std::move(node), from.outputs[0], fmt::format("until{}", p));
    }
    replaced_[from.outputs[0]] = total;
  }

  // Adds a node before node `at`; its output is named after `like`.
  ir::ValueId add(ir::NodeId at, ir::Node node, ir::ValueId like, const std::string& suffix) {
    const std::string& name = graph_.values[static_cast<size_t>(like)].name;
    return editor_.add(at, std::move(node),
                       fmt::format("{}.{}#{}", name, suffix, graph_.values.size()));
  }

  // Places the new nodes and redirects the readers of replaced values.
  void rebuild() {
    editor_.place();
    Rewrite rewrite(graph_);
    for (auto [from, to] : replaced_) {
      const bool done = rewrite.replace(from, to);
      RF_CHECK(done, "value {} cannot be replaced", from);
    }
    for (ir::ValueId result : dead_) {
      rewrite.remove(graph_.values[static_cast<size_t>(result)].producer);
    }
    rewrite.apply();
  }

  ir::Graph& graph_;
  ir::ExprPool& pool_;
  ops::GraphEditor editor_;
  size_t axis_ = 0;
  std::vector<ir::ValueId> parts_, values_;
  std::vector<ir::Expr> starts_;
  ir::Expr total_ = nullptr;
  std::map<ir::NodeId, Carried> nodes_;
  std::vector<ir::ValueId> dead_;  // results of removed nodes
  std::map<ir::ValueId, ir::ValueId> replaced_;
};

}  // namespace

bool split_concatenation(ir::Graph& graph) { return Splitter(graph).run(); }

}  // namespace redfuser::passes
