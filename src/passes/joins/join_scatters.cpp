// Updates that overwrite a box are joined with the data around it:
//     scatter(x, [a : b], u) = [x[: a], u, x[b :]]
// and so in each dimension that the box covers in part. Exporters write an assignment to a slice
// so. Scatters one behind the other along one dimension become one concatenation.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "ops/graph_editor.h"
#include "ops/op_def.h"
#include "passes/joins/scatter_box.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

// So many pieces at most: a scatter behind them starts anew.
constexpr size_t kMostPieces = 256;

// The dimension of a value that is dimension d of what a Transpose makes of it, for each d.
using Order = std::vector<int64_t>;

bool is_identity(const Order& order) { return std::is_sorted(order.begin(), order.end()); }

Order inverse(const Order& order) {
  Order result(order.size());
  for (size_t d = 0; d < order.size(); ++d) {
    result[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  }
  return result;
}

class ScatterJoiner {
 public:
  explicit ScatterJoiner(ir::Graph& graph)
      : graph_(graph), consumers_(graph.consumers()), editor_(graph) {}

  bool run() {
    const auto nodes = static_cast<ir::NodeId>(graph_.nodes.size());
    for (ir::NodeId n = 0; n < nodes; ++n) {
      const ir::Node node = graph_.nodes[static_cast<size_t>(n)];
      if (const auto box = find_scatter_box(graph_, node)) place(n, node, *box);
    }
    for (const auto& [result, row] : rows_) {
      if (continued_.count(result) > 0) continue;
      ops::Replacement to(graph_, editor_, row.node, "joined");
      replaced_.emplace_back(result, ordered(concatenated(row, to), row.order, to));
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
  // value[start : start + size] along a dimension.
  struct Piece {
    ir::ValueId value;
    int64_t start, size;
  };
  // The result of a scatter: pieces joined along one dimension, then in another order.
  struct Row {
    ir::NodeId node;
    Order order;
    size_t dim;
    std::vector<Piece> pieces;
  };

  void place(ir::NodeId n, const ir::Node& node, const ScatterBox& box) {
    ops::Replacement to(graph_, editor_, n, "update");
    const ir::ValueId updates = arranged(node.inputs[2], box, to);
    std::vector<size_t> dims;
    for (size_t d = 0; d < box.ranges.size(); ++d) {
      if (!box.ranges[d].whole) dims.push_back(d);
    }
    if (dims.size() > 1) {
      replaced_.emplace_back(node.outputs[0], nested(node.inputs[0], updates, box, dims, to));
      return;
    }
    const auto& range = box.ranges[dims[0]];
    Row row = row_of(n, node.inputs[0], dims[0]);
    replace(row.pieces, {ordered(updates, inverse(row.order), to), 0, range.size}, range.start);
    rows_.emplace(node.outputs[0], std::move(row));
  }

  // The data of a scatter along a dimension, before what transposes it: so that the pieces are in
  // the order of what they are made of, and scatters between transpositions follow each other. A
  // row continues that of a scatter whose result nothing else reads.
  Row row_of(ir::NodeId n, ir::ValueId data, size_t dim) {
    Order order(graph_.values[static_cast<size_t>(data)].shape.size());
    std::iota(order.begin(), order.end(), 0);
    bool alone = is_read_once(data);
    while (rows_.count(data) == 0 && is_transposed(data)) {
      const ir::Node& node = graph_.nodes[static_cast<size_t>(producer_of(data))];
      order = composed(order_of(node), order);
      data = node.inputs[0];
      alone = alone && is_read_once(data);
    }
    const auto found = rows_.find(data);
    if (found != rows_.end() && alone) {
      const Row& row = found->second;
      const Order whole = composed(row.order, order);
      if (static_cast<size_t>(whole[dim]) == row.dim && row.pieces.size() < kMostPieces) {
        continued_.insert(data);
        return {n, whole, row.dim, row.pieces};
      }
    }
    const auto along = static_cast<size_t>(order[dim]);
    return {n, order, along, {{data, 0, size_along(data, along)}}};
  }

  bool is_read_once(ir::ValueId value) const {
    return consumers_[static_cast<size_t>(value)].size() == 1 &&
           std::count(graph_.outputs.begin(), graph_.outputs.end(), value) == 0;
  }
  ir::NodeId producer_of(ir::ValueId value) const {
    return graph_.values[static_cast<size_t>(value)].producer;
  }
  bool is_transposed(ir::ValueId value) const {
    const ir::NodeId node = producer_of(value);
    if (node < 0) return false;
    const ir::Node& producer = graph_.nodes[static_cast<size_t>(node)];
    return producer.op == "Transpose" && producer.domain.empty();
  }
  Order order_of(const ir::Node& node) const {
    const auto rank =
        static_cast<int64_t>(graph_.values[static_cast<size_t>(node.inputs[0])].shape.size());
    Order reversed;
    for (int64_t d = rank - 1; d >= 0; --d) reversed.push_back(d);
    return ops::NodeView(graph_, node).integers("perm", reversed);
  }
  // Of a value in the order `first` and then in the order `second`.
  static Order composed(const Order& first, const Order& second) {
    Order result;
    for (const int64_t d : second) result.push_back(first[static_cast<size_t>(d)]);
    return result;
  }

  int64_t size_along(ir::ValueId value, size_t dim) const {
    return graph_.values[static_cast<size_t>(value)].shape[dim]->integer;
  }

  static void replace(std::vector<Piece>& pieces, Piece update, int64_t start) {
    std::vector<Piece> result;
    int64_t at = 0;
    const int64_t end = start + update.size;
    for (const Piece& piece : pieces) {
      const int64_t before = std::min(piece.size, start - at);
      const int64_t behind = std::min(piece.size, at + piece.size - end);
      if (before > 0) result.push_back({piece.value, piece.start, before});
      if (at <= start && start < at + piece.size) result.push_back(update);
      if (behind > 0) {
        result.push_back({piece.value, piece.start + piece.size - behind, behind});
      }
      at += piece.size;
    }
    pieces = std::move(result);
  }

  ir::ValueId concatenated(const Row& row, ops::Replacement& to) {
    std::vector<ir::ValueId> parts;
    for (const Piece& piece : row.pieces) parts.push_back(part(piece, row.dim, to));
    return to.add("Concat", parts, {{"axis", static_cast<int64_t>(row.dim)}});
  }

  ir::ValueId part(const Piece& piece, size_t dim, ops::Replacement& to) {
    if (piece.size == size_along(piece.value, dim)) return piece.value;
    return to.add("Slice",
                  {piece.value, to.list({piece.start}), to.list({piece.start + piece.size}),
                   to.list({static_cast<int64_t>(dim)})});
  }

  ir::ValueId ordered(ir::ValueId value, const Order& order, ops::Replacement& to) {
    return is_identity(order) ? value : to.add("Transpose", {value}, {{"perm", order}});
  }

  // The updates within the data, dimension by dimension.
  ir::ValueId nested(ir::ValueId data, ir::ValueId updates, const ScatterBox& box,
                     std::span<const size_t> dims, ops::Replacement& to) {
    if (dims.empty()) return updates;
    const auto& range = box.ranges[dims[0]];
    const Piece middle{data, range.start, range.size};
    const ir::ValueId inner =
        dims.size() == 1 ? updates
                         : nested(part(middle, dims[0], to), updates, box, dims.subspan(1), to);
    Row row{0, {}, dims[0], {{data, 0, size_along(data, dims[0])}}};
    replace(row.pieces, {inner, 0, range.size}, range.start);
    return concatenated(row, to);
  }

  // The updates with their dimensions in the order of the data's.
  ir::ValueId arranged(ir::ValueId updates, const ScatterBox& box, ops::Replacement& to) {
    const size_t rank = graph_.values[static_cast<size_t>(updates)].shape.size();
    Order order, used;
    std::vector<int64_t> missing, dropped;
    for (size_t d = 0; d < box.axes.size(); ++d) {
      (box.axes[d] == ScatterBox::kNone ? missing : used)
          .push_back(box.axes[d] == ScatterBox::kNone ? static_cast<int64_t>(d) : box.axes[d]);
    }
    for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis) {
      if (std::count(used.begin(), used.end(), axis) > 0) continue;
      dropped.push_back(static_cast<int64_t>(order.size()));
      order.push_back(axis);
    }
    order.insert(order.end(), used.begin(), used.end());
    updates = ordered(updates, order, to);
    if (!dropped.empty()) updates = to.add("Squeeze", {updates, to.list(dropped)});
    return missing.empty() ? updates : to.add("Unsqueeze", {updates, to.list(missing)});
  }

  ir::Graph& graph_;
  const std::vector<std::vector<ir::NodeId>> consumers_;
  ops::GraphEditor editor_;
  std::map<ir::ValueId, Row> rows_;  // by the scatter's result
  std::set<ir::ValueId> continued_;  // results that further rows contain
  std::vector<std::pair<ir::ValueId, ir::ValueId>> replaced_;
};

}  // namespace

bool join_scatters(ir::Graph& graph) { return ScatterJoiner(graph).run(); }

}  // namespace redfuser::passes
