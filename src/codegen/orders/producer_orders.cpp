#include "codegen/orders/producer_orders.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace redfuser::codegen {
namespace {

using Axes = std::vector<ir::Expr>;

// The place of the innermost dimension that has more than one element.
size_t innermost(const Axes& indices, const MemoryOrder& order) {
  for (size_t i = order.size(); i-- > 0;) {
    const auto dim = static_cast<size_t>(order[i]);
    if (indices[dim]->op != ir::ExprOp::Constant) return dim;
  }
  return 0;
}

MemoryOrder row_major(size_t rank) {
  MemoryOrder order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int>(i));
  return order;
}

// Nothing where elements along the axis are adjacent in memory, or nowhere.
std::optional<MemoryOrder> order_of(const Axes& indices, ir::Expr axis) {
  MemoryOrder order = row_major(indices.size());
  if (indices.empty() || indices[innermost(indices, order)]->depends_on(axis)) return {};
  const auto first = std::stable_partition(order.begin(), order.end(), [&](int dim) {
    return !indices[static_cast<size_t>(dim)]->depends_on(axis);
  });
  if (first == order.end()) return {};
  return order;
}

class ProducerOrders {
 public:
  ProducerOrders(const fuse::Plan& plan, const std::set<ir::ValueId>& excluded,
                 MemoryOrders& orders)
      : plan_(plan), excluded_(excluded), orders_(orders) {}

  void find() {
    for (const fuse::Step& step : plan_.steps) {
      if (const auto* map = std::get_if<fuse::MapStep>(&step.kind)) add_gathers(*map);
      const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind);
      if (cascade == nullptr) continue;
      const cascade::Cascade& c = cascade->streaming.cascade;
      if (!reads_along(cascade->streaming)) continue;
      for (const cascade::CascadeOutput& output : c.outputs) {
        if (output.maps_back) add(output.value, output.axes, c.stream);
      }
    }
  }

 private:
  // Whether rows have adjacent elements in what they reduce. Those of columns have adjacent rows,
  // and write them so.
  bool reads_along(const cascade::Streaming& s) const {
    bool all = true;
    for (const cascade::Accumulator& a : s.accumulators) {
      visit(a.lift, [&](ir::Expr e) {
        if (e->op != ir::ExprOp::Read || e->integer < 0 || e->args.empty()) return;
        if (!e->depends_on(s.cascade.stream)) return;
        const auto order = orders_.find(static_cast<ir::ValueId>(e->integer));
        const size_t last =
            innermost(e->args, order == orders_.end() ? row_major(e->args.size()) : order->second);
        all &= e->args[last]->depends_on(s.cascade.stream);
      });
    }
    return all;
  }

  // Of what a map reads at positions that are data, with adjacent elements along an axis of its
  // results: threads along another one would read them apart.
  void add_gathers(const fuse::MapStep& map) {
    for (const fuse::MapStep::Output& output : map.outputs) {
      const ir::Expr axis = gathered_along(output.body, map.axes);
      if (axis == nullptr) continue;
      Axes indices = map.axes;
      for (ir::Expr& index : indices) {
        if (index->op == ir::ExprOp::Axis && index->extent()->is_constant(1)) {
          index = index->extent();  // a constant
        }
      }
      add(output.value, indices, axis);
    }
  }

  // The axis along which every such read has adjacent elements, or is one element; or null.
  ir::Expr gathered_along(ir::Expr body, const Axes& axes) const {
    std::set<ir::Expr> found, apart;
    visit(body, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0 || e->args.size() < 2) return;
      if (std::none_of(e->args.begin(), e->args.end(), [](ir::Expr i) { return i->has_read; })) {
        return;
      }
      const auto order = orders_.find(static_cast<ir::ValueId>(e->integer));
      const ir::Expr last = e->args[innermost(
          e->args, order == orders_.end() ? row_major(e->args.size()) : order->second)];
      const ir::Expr axis = last->has_read ? nullptr : adjacent_along(last, axes);
      (axis ? found : apart).insert(axis ? axis : e);
    });
    if (found.size() != 1) return nullptr;
    ir::Expr axis = *found.begin();
    const auto depends = [axis](ir::Expr read) { return read->depends_on(axis); };
    return std::any_of(apart.begin(), apart.end(), depends) ? nullptr : axis;
  }

  // The axis that moves the index by one.
  static ir::Expr adjacent_along(ir::Expr index, const Axes& axes) {
    const auto moves = [&](ir::Expr axis) {
      if (index == axis) return true;
      const auto depends = [axis](ir::Expr part) { return part->depends_on(axis); };
      return index->op == ir::ExprOp::Add &&
             std::count_if(index->args.begin(), index->args.end(), depends) == 1 &&
             std::count(index->args.begin(), index->args.end(), axis) == 1;
    };
    const auto found = std::find_if(axes.begin(), axes.end(), moves);
    return found == axes.end() ? nullptr : *found;
  }

  void add(ir::ValueId id, const Axes& indices, ir::Expr axis) {
    if (id < 0 || excluded_.count(id) > 0 || orders_.count(id) > 0) return;
    const std::optional<MemoryOrder> order = order_of(indices, axis);
    if (order && all_take(id, *order)) orders_[id] = *order;
  }

  bool all_take(ir::ValueId id, const MemoryOrder& order) const {
    return std::all_of(plan_.steps.begin(), plan_.steps.end(), [&](const fuse::Step& step) {
      if (std::find(step.reads.begin(), step.reads.end(), id) == step.reads.end()) return true;
      return std::visit([&](const auto& kind) { return takes(kind, id, order); }, step.kind);
    });
  }

  // Whether each read of the value in `root` has an index that `wanted` accepts in the innermost
  // dimension.
  static bool each_read(ir::Expr root, ir::ValueId id, const MemoryOrder& order,
                        const std::function<bool(ir::Expr)>& wanted) {
    bool all = true;
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer != id) return;
      all &= wanted(e->args[innermost(e->args, order)]);
    });
    return all;
  }

  // Tiles of maps turn their operands.
  static bool takes(const fuse::MapStep&, ir::ValueId, const MemoryOrder&) { return true; }

  // Of matrices either dimension may be adjacent, but for operands of 8 bits: the matrix units take
  // adjacent terms.
  bool takes(const fuse::ProductStep& step, ir::ValueId id, const MemoryOrder& order) const {
    const bool bytes = size_of(plan_.graph->values[static_cast<size_t>(id)].dtype) == 1;
    const auto is_axis = [&](ir::Expr index) {
      return bytes ? index == step.k : index->op == ir::ExprOp::Axis;
    };
    bool all = each_read(step.a, id, order, is_axis);
    for (ir::Expr b : step.b) all &= each_read(b, id, order, is_axis);
    const auto by_column = [&](ir::Expr index) {
      return std::any_of(step.n.begin(), step.n.end(),
                         [&](ir::Expr axis) { return index->depends_on(axis); });
    };
    return all && each_read(step.epilogue, id, order, by_column);
  }

  // Rows have adjacent elements along the stream; sums of products and weighted sums along the
  // summed axis and the columns.
  static bool takes(const fuse::CascadeStep& step, ir::ValueId id, const MemoryOrder& order) {
    const cascade::Streaming& s = step.streaming;
    bool sums = false;
    for (const cascade::Accumulator& a : s.accumulators) {
      visit(a.lift, [&](ir::Expr e) { sums |= e->op == ir::ExprOp::Reduce; });
    }
    const auto wanted = [&](ir::Expr index) { return index->depends_on(s.cascade.stream) != sums; };
    bool all = true;
    for (const cascade::Accumulator& a : s.accumulators)
      all &= each_read(a.lift, id, order, wanted);
    for (ir::Expr e : s.finish) all &= each_read(e, id, order, wanted);
    for (const cascade::CascadeOutput& output : s.cascade.outputs) {
      all &= each_read(output.body, id, order, wanted);
    }
    return all;
  }

  static bool takes(const fuse::ReduceStep&, ir::ValueId, const MemoryOrder&) { return false; }
  static bool takes(const fuse::OpaqueStep&, ir::ValueId, const MemoryOrder&) { return false; }
  static bool takes(const fuse::AliasStep&, ir::ValueId, const MemoryOrder&) { return false; }

  const fuse::Plan& plan_;
  const std::set<ir::ValueId>& excluded_;
  MemoryOrders& orders_;
};

}  // namespace

void order_by_producers(const fuse::Plan& plan, const std::set<ir::ValueId>& excluded,
                        MemoryOrders& orders) {
  ProducerOrders(plan, excluded, orders).find();
}

}  // namespace redfuser::codegen
