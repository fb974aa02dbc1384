// Parts of one value at a constant distance, joined along an axis of their own, are its windows:
//     [x[o : o+w], x[o+s : o+s+w], x[o+2·s : ...], ...][k, j] = x[o + k·s + j]
// Exporters write an unfold so, with a slice for each window. The elements tell, whatever the
// operators are.
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/polynomial.h"
#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

constexpr size_t kFewestParts = 4;
constexpr int64_t kNone = -1;

// Where the parts of a concatenation lie: part k at j is source[..., first + k·step + j·stride,
// ...] in the dimension `dim`. `axes` has, for each dimension of the source, that of the result
// which runs along it, or kNone where the parts read one position; in `dim` it is that of j.
struct Windows {
  ir::ValueId source = ir::kAbsent;
  size_t dim = 0, part_axis = 0;
  int64_t first = 0, step = 0, stride = 0;
  std::vector<int64_t> axes;
};

// first + step · (0, 1, ..., count - 1), a function of its index.
ir::ValueId progression(int64_t count, int64_t step, int64_t first, ops::Replacement& to) {
  const ir::ValueId numbers =
      to.add("Range", {to.integers({}, {0}), to.integers({}, {count}), to.integers({}, {1})});
  const ir::ValueId scaled =
      step == 1 ? numbers : to.add("Mul", {numbers, to.integers({}, {step})});
  return first == 0 ? scaled : to.add("Add", {scaled, to.integers({}, {first})});
}

// Dimensions of the axes `order`, sorted, with dimensions of one element for the missing axes.
ir::ValueId arranged(ir::ValueId value, const std::vector<int64_t>& order, size_t rank,
                     ops::Replacement& to) {
  std::vector<int64_t> sorted = order, permutation, missing;
  std::sort(sorted.begin(), sorted.end());
  for (const int64_t axis : sorted) {
    permutation.push_back(std::find(order.begin(), order.end(), axis) - order.begin());
  }
  if (sorted != order) value = to.add("Transpose", {value}, {{"perm", permutation}});
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto number = static_cast<int64_t>(axis);
    if (!std::binary_search(sorted.begin(), sorted.end(), number)) missing.push_back(number);
  }
  return missing.empty() ? value : to.add("Unsqueeze", {value, to.list(missing)});
}

// Gather(source, positions[k, j]) with its dimensions in the order of the result, whose shape is
// given by value: added nodes move values.
ir::ValueId joined(const Windows& windows, std::vector<ir::Expr> shape, ops::Replacement& to) {
  const int64_t window = windows.axes[windows.dim];
  ir::ValueId positions =
      progression(shape[windows.part_axis]->integer, windows.step, windows.first, to);
  if (window != kNone) {
    positions = to.add(
        "Add", {to.add("Unsqueeze", {positions, to.list({1})}),
                progression(shape[static_cast<size_t>(window)]->integer, windows.stride, 0, to)});
  }
  ir::ValueId result =
      to.add("Gather", {windows.source, positions}, {{"axis", static_cast<int64_t>(windows.dim)}});
  std::vector<int64_t> order;  // axes of the result, as the gathered dimensions have them
  std::vector<int64_t> single;
  for (size_t d = 0; d < windows.axes.size(); ++d) {
    if (d == windows.dim) order.push_back(static_cast<int64_t>(windows.part_axis));
    if (windows.axes[d] != kNone) {
      order.push_back(windows.axes[d]);
    } else if (d != windows.dim) {
      const int64_t behind = d > windows.dim && window != kNone ? 1 : 0;
      single.push_back(static_cast<int64_t>(d) + behind);
    }
  }
  if (!single.empty()) result = to.add("Squeeze", {result, to.list(single)});
  return arranged(result, order, shape.size(), to);
}

class WindowsOfParts {
 public:
  explicit WindowsOfParts(ir::Graph& graph)
      : graph_(graph), pool_(*graph.pool), editor_(graph), views_(graph.values.size(), -1) {}

  bool run() {
    const size_t nodes = graph_.nodes.size();
    for (size_t n = 0; n < nodes; ++n) {
      const auto windows = find(graph_.nodes[n]);
      if (!windows) continue;
      ops::Replacement to(graph_, editor_, static_cast<ir::NodeId>(n), "window");
      const ir::ValueId from = graph_.nodes[n].outputs[0];
      replaced_.emplace_back(from, joined(*windows, shape_of(from), to));
    }
    if (replaced_.empty()) return false;
    editor_.place();
    Rewrite rewrite(graph_);
    bool changed = false;
    for (const auto& [from, to] : replaced_) changed |= rewrite.replace(from, to);
    rewrite.apply();
    eliminate_dead(graph_);
    return changed;
  }

 private:
  const std::vector<ir::Expr>& shape_of(ir::ValueId id) const {
    return graph_.values[static_cast<size_t>(id)].shape;
  }

  // Whether the value's elements are those of another value.
  bool is_view(ir::ValueId id) {
    signed char& known = views_[static_cast<size_t>(id)];
    if (known >= 0) return known == 1;
    const ir::NodeId producer = graph_.values[static_cast<size_t>(id)].producer;
    known = 0;
    if (producer < 0) return false;
    const ir::Node& node = graph_.nodes[static_cast<size_t>(producer)];
    if (node.def == nullptr || node.def->lower == nullptr || node.def->random) return false;
    ops::Lowering lowering(graph_, [id](ir::ValueId other) { return other == id; });
    ir::Expr element = lowering.element(id, ops::shared_axes(graph_, id));
    known = element->op == ir::ExprOp::Read && element->integer != id;
    return known == 1;
  }

  // Of a node that has an input for each position of an axis.
  std::optional<Windows> find(const ir::Node& node) {
    if (node.def == nullptr || node.def->lower == nullptr || node.def->random) return std::nullopt;
    const size_t parts = node.inputs.size();
    if (parts < kFewestParts || node.outputs.size() != 1) return std::nullopt;
    if (is_view(node.outputs[0])) return std::nullopt;  // one read already
    const std::vector<ir::Expr> shape = shape_of(node.outputs[0]);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!shape[axis]->is_constant(static_cast<int64_t>(parts))) continue;
      if (auto windows = find(node.outputs[0], axis)) return windows;
    }
    return std::nullopt;
  }

  // At every position of this axis the value's element is a read of one value.
  std::optional<Windows> find(ir::ValueId value, size_t part_axis) {
    const std::vector<ir::Expr>& shape = shape_of(value);
    Windows windows;
    windows.part_axis = part_axis;
    std::vector<ir::Expr> index = ops::shared_axes(graph_, value);
    for (size_t a = 0; a < index.size(); ++a) {
      if (shape[a]->is_constant(1)) index[a] = pool_.integer(0);
    }
    ops::Lowering lowering(graph_, [&](ir::ValueId id) { return id == value || is_view(id); });
    ir::Expr first = nullptr;
    for (int64_t k = 0; k < shape[part_axis]->integer; ++k) {
      index[part_axis] = pool_.integer(k);
      ir::Expr part = lowering.element(value, index);
      if (part->op != ir::ExprOp::Read) return std::nullopt;
      if (first == nullptr) first = part;
      if (!continues(windows, first, part, k)) return std::nullopt;
    }
    windows.source = static_cast<ir::ValueId>(first->integer);
    if (!find_axes(windows, first, index)) return std::nullopt;
    return windows;
  }

  // Whether part k lies k steps behind the first one, in one dimension.
  bool continues(Windows& windows, ir::Expr first, ir::Expr part, int64_t k) {
    if (part->integer != first->integer || part->args.size() != first->args.size()) return false;
    for (size_t d = 0; d < first->args.size(); ++d) {
      ir::Expr distance = pool_.sub(part->args[d], first->args[d]);
      if (!distance->is_constant()) return false;
      if (k == 1 && distance->integer != 0) {
        if (windows.step != 0) return false;
        windows.dim = d, windows.step = distance->integer;
      }
      if (distance->integer != (d == windows.dim ? k * windows.step : 0)) return false;
    }
    return k == 0 || windows.step != 0;
  }

  // The axis of the result along which each dimension of the source is read, each one once.
  bool find_axes(Windows& windows, ir::Expr first, const std::vector<ir::Expr>& index) {
    const std::vector<ir::Expr>& from = shape_of(windows.source);
    std::vector<char> taken(index.size());
    for (size_t d = 0; d < from.size(); ++d) {
      windows.axes.push_back(kNone);
      ir::Expr read = first->args[d];
      for (size_t a = 0; a < index.size() && !read->is_constant(); ++a) {
        if (a == windows.part_axis || !read->depends_on(index[a])) continue;
        const auto affine = affine_in(pool_, read, index[a]);
        if (!affine || taken[a] || !affine->stride->is_constant()) return false;
        taken[a] = 1;
        windows.axes.back() = static_cast<int64_t>(a);
        if (d == windows.dim) windows.stride = affine->stride->integer;
        const bool whole = affine->stride->is_constant(1) && affine->base->is_constant(0) &&
                           index[a]->extent() == from[d];
        if (d != windows.dim && !whole) return false;
        read = affine->base;
      }
      if (!read->is_constant()) return false;
      if (d == windows.dim) windows.first = read->integer;
      if (d != windows.dim && windows.axes.back() == kNone && !from[d]->is_constant(1))
        return false;
    }
    const bool window = windows.axes[windows.dim] != kNone;
    if (window && !index[static_cast<size_t>(windows.axes[windows.dim])]->extent()->is_constant()) {
      return false;
    }
    for (size_t a = 0; a < index.size(); ++a) {
      if (a != windows.part_axis && !taken[a] && !index[a]->is_constant()) return false;
    }
    return true;
  }

  ir::Graph& graph_;
  ir::ExprPool& pool_;
  ops::GraphEditor editor_;
  std::vector<signed char> views_;  // of the values: -1 unknown, else whether it is a view
  std::vector<std::pair<ir::ValueId, ir::ValueId>> replaced_;
};

}  // namespace

bool join_windows(ir::Graph& graph) { return WindowsOfParts(graph).run(); }

}  // namespace redfuser::passes
