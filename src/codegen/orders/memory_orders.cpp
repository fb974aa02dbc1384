#include "codegen/orders/memory_orders.h"

#include <algorithm>
#include <functional>

#include "codegen/orders/matrix_orders.h"
#include "codegen/orders/producer_orders.h"
#include "ops/op_def.h"

namespace redfuser::codegen {
namespace {

using Visitor = std::function<void(ir::Expr)>;

// Every expression of a step.
struct Expressions {
  const Visitor& visit;

  void operator()(const fuse::MapStep& step) const {
    for (const fuse::MapStep::Output& output : step.outputs) visit(output.body);
  }
  void operator()(const fuse::ReduceStep& step) const { visit(step.body); }
  void operator()(const fuse::ProductStep& step) const {
    visit(step.a);
    for (ir::Expr b : step.b) visit(b);
    visit(step.epilogue);
  }
  void operator()(const fuse::CascadeStep& step) const {
    const cascade::Streaming& s = step.streaming;
    for (const cascade::Accumulator& a : s.accumulators) {
      visit(a.lift);
      if (a.transport) visit(a.transport);
    }
    for (const cascade::Reference& reference : s.references) visit(reference.value);
    for (ir::Expr e : s.finish) visit(e);
    for (const cascade::CascadeOutput& output : s.cascade.outputs) visit(output.body);
  }
  void operator()(const fuse::OpaqueStep& step) const {
    if (step.epilogue) visit(step.epilogue->body);
  }
  void operator()(const fuse::AliasStep&) const {}
};

class Orders {
 public:
  Orders(const fuse::Plan& plan, const std::set<size_t>& on_host)
      : plan_(plan), graph_(*plan.graph) {
    exclude(on_host);
  }

  MemoryOrders find() {
    for (const fuse::Step& step : plan_.steps) start(step);
    while (changed_) {
      changed_ = false;
      for (const fuse::Step& step : plan_.steps) spread(step);
    }
    order_by_producers(plan_, excluded_, orders_);
    order_matrices(plan_, excluded_, orders_);
    return std::move(orders_);
  }

 private:
  const ir::Value& value(ir::ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  const ir::Node& node_of(const fuse::OpaqueStep& step) const {
    return graph_.nodes[static_cast<size_t>(step.node)];
  }

  static bool is_image(const ir::Value& value) {
    const size_t rank = value.shape.size();
    const bool half = is_float(value.dtype) && size_of(value.dtype) == 2;
    return rank >= 3 && rank <= 5 && (half || value.dtype == DType::Float32);
  }

  static MemoryOrder channels_last(size_t rank) {
    MemoryOrder order = {0};
    for (size_t i = 2; i < rank; ++i) order.push_back(static_cast<int>(i));
    order.push_back(1);
    return order;
  }

  void want(ir::ValueId id) {
    if (id < 0 || !is_image(value(id)) || value(id).constant.defined()) return;
    if (excluded_.count(id) + mixed_.count(id) + orders_.count(id) > 0) return;
    orders_[id] = channels_last(value(id).shape.size());
    changed_ = true;
  }

  bool wanted(ir::ValueId id) const { return orders_.count(id) > 0; }

  // Convolutions and pools take values in any order.
  static bool takes_any_order(const ir::Node& node) {
    constexpr std::string_view kOperators[] = {"Conv", "ConvTranspose", "MaxPool", "AveragePool"};
    return node.domain.empty() &&
           std::find(std::begin(kOperators), std::end(kOperators), node.op) != std::end(kOperators);
  }

  void exclude(const std::set<size_t>& on_host) {
    for (const auto* ends : {&graph_.inputs, &graph_.outputs}) {
      excluded_.insert(ends->begin(), ends->end());
    }
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const fuse::Step& step = plan_.steps[i];
      const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
      const bool other = opaque != nullptr && !takes_any_order(node_of(*opaque));
      if (other || on_host.count(i) > 0 || std::holds_alternative<fuse::AliasStep>(step.kind)) {
        exclude_all(step);
      } else {
        find_mixed(step);
      }
    }
  }

  void exclude_all(const fuse::Step& step) {
    excluded_.insert(step.reads.begin(), step.reads.end());
    excluded_.insert(step.writes.begin(), step.writes.end());
    if (const auto* alias = std::get_if<fuse::AliasStep>(&step.kind)) {
      excluded_.insert({alias->value, alias->source});
    }
  }

  // Values of which an axis that the step reduces has channels and others.
  void find_mixed(const fuse::Step& step) {
    std::set<ir::Expr> reduced;
    if (const auto* product = std::get_if<fuse::ProductStep>(&step.kind)) {
      reduced.insert(product->k);
    }
    if (const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind)) {
      const cascade::Cascade& c = cascade->streaming.cascade;
      reduced.insert(c.stream);
      for (const cascade::CascadeOutput& output : c.outputs) {
        const bool mixed = output.maps_back && mixes_channels(output.axes, c.stream);
        if (mixed && is_large(output.value)) mixed_.insert(output.value);
      }
    }
    visit_all(step, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Reduce) reduced.insert(e->bound_axis());
    });
    visit_all(step, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0 || e->args.size() < 3) return;
      for (ir::Expr axis : reduced) {
        if (mixes_channels(e->args, axis)) mixed_.insert(static_cast<ir::ValueId>(e->integer));
      }
    });
  }

  // Whether the axis has channels, dimension 1, and places.
  static bool mixes_channels(const std::vector<ir::Expr>& indices, ir::Expr axis) {
    if (indices.size() < 3 || !indices[1]->depends_on(axis)) return false;
    return std::count_if(indices.begin(), indices.end(),
                         [&](ir::Expr index) { return index->depends_on(axis); }) > 1;
  }

  // Whether elements that are written apart take longer than a copy to another order.
  bool is_large(ir::ValueId id) const {
    constexpr int64_t kElements = int64_t{1} << 17;
    int64_t elements = 1;
    for (ir::Expr size : value(id).shape) {
      if (size->op != ir::ExprOp::Constant) return true;
      elements *= std::max<int64_t>(size->integer, 1);
      if (elements > kElements) return true;
    }
    return false;
  }

  static void visit_all(const fuse::Step& step, const Visitor& visitor) {
    const Visitor each = [&](ir::Expr root) { visit(root, visitor); };
    std::visit(Expressions{each}, step.kind);
  }

  // The values that convolutions read and write, and their weights.
  void start(const fuse::Step& step) {
    const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
    if (opaque == nullptr || node_of(*opaque).op != "Conv") return;
    const ir::Node& node = node_of(*opaque);
    if (!takes_any_order(node) || !is_image(value(node.inputs[0]))) return;
    want(node.inputs[0]);
    for (const ir::ValueId written : step.writes) want(written);
    order_weights(node.inputs[1], ops::NodeView(graph_, node).integer("group", 1) > 1);
  }

  void order_weights(ir::ValueId id, bool grouped) {
    const ir::Value& weights = value(id);
    if (!weights.constant.defined() || !is_image(weights) || !only_weights(id)) return;
    const bool depthwise = grouped && weights.shape[1]->is_constant(1);
    MemoryOrder& order = orders_[id] = channels_last(weights.shape.size());
    // The kernel's places come first.
    if (depthwise) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  }

  // Every step that reads the value is a convolution with these weights.
  bool only_weights(ir::ValueId id) const {
    return excluded_.count(id) == 0 &&
           std::all_of(plan_.steps.begin(), plan_.steps.end(), [&](const fuse::Step& step) {
             const auto& reads = step.reads;
             if (std::find(reads.begin(), reads.end(), id) == reads.end()) return true;
             const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
             return opaque != nullptr && node_of(*opaque).op == "Conv" &&
                    node_of(*opaque).inputs[1] == id && node_of(*opaque).inputs[0] != id;
           });
  }

  // To the values that a step computes from, or combines with, values in this order.
  void spread(const fuse::Step& step) {
    if (const auto* map = std::get_if<fuse::MapStep>(&step.kind)) {
      for (const fuse::MapStep::Output& output : map->outputs) {
        spread(output.value, map->axes, output.body);
      }
    } else if (const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind)) {
      const ir::Node& node = node_of(*opaque);
      if (opaque->epilogue) {
        spread(opaque->epilogue->value, opaque->epilogue->axes, opaque->epilogue->body);
      }
      if (!takes_any_order(node) || node.op == "Conv") return;
      for (const ir::ValueId written : step.writes) {
        if (wanted(node.inputs[0])) want(written);
        if (wanted(written)) want(node.inputs[0]);
      }
    }
  }

  void spread(ir::ValueId to, const std::vector<ir::Expr>& axes, ir::Expr body) {
    if (axes.size() < 3) return;
    visit(body, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0 || !keeps_channels(e, axes)) return;
      const auto from = static_cast<ir::ValueId>(e->integer);
      if (wanted(from)) want(to);
      if (wanted(to)) want(from);
    });
  }

  // Whether the channel that is read follows from the result's channel alone, and nothing else
  // does.
  static bool keeps_channels(ir::Expr read, const std::vector<ir::Expr>& axes) {
    if (read->args.size() != axes.size() || axes[1]->op != ir::ExprOp::Axis) return false;
    for (size_t i = 0; i < axes.size(); ++i) {
      if ((i == 1) != read->args[i]->depends_on(axes[1])) return false;
    }
    return true;
  }

  const fuse::Plan& plan_;
  const ir::Graph& graph_;
  std::set<ir::ValueId> excluded_;
  std::set<ir::ValueId> mixed_;  // whose channels must not come last
  MemoryOrders orders_;
  bool changed_ = true;
};

}  // namespace

MemoryOrders memory_orders(const fuse::Plan& plan, const std::set<size_t>& on_host) {
  return Orders(plan, on_host).find();
}

void place_values(Target& target, const fuse::Plan& plan, const std::vector<fuse::Append>& appends,
                  const std::set<size_t>& on_host) {
  std::set<ir::ValueId> touched;
  for (const size_t step : on_host) {
    touched.insert(plan.steps[step].reads.begin(), plan.steps[step].reads.end());
    touched.insert(plan.steps[step].writes.begin(), plan.steps[step].writes.end());
  }
  auto growing = std::make_shared<Appends>();
  for (const fuse::Append& append : appends) {
    if (touched.count(append.past) + touched.count(append.present) == 0) {
      growing->emplace(append.present, append);
    }
  }
  target.appends = std::move(growing);
  target.orders = std::make_shared<MemoryOrders>(memory_orders(plan, on_host));
}

}  // namespace redfuser::codegen
