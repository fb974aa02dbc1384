// [A·B1 + c1, A·B2 + c2, ...] = A·[B1, B2, ...] + [c1, c2, ...]: products of one matrix with
// several constant ones become one product, and their readers read slices of it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "ir/contraction.h"
#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "passes/column_concat.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"
#include "passes/weights/store_codes.h"

namespace redfuser::passes {
namespace {

// value[.., n] = Σ_k input[.., k] · weight + bias[n], with weight[k, n] or, by_rows, weight[n, k].
struct Linear {
  ir::ValueId value = ir::kAbsent, input = ir::kAbsent, weight = ir::kAbsent, bias = ir::kAbsent;
  bool by_rows = false;
  std::vector<ir::NodeId> nodes;
};

class ProductMerger {
 public:
  explicit ProductMerger(ir::Graph& graph) : graph_(graph), pool_(*graph.pool), editor_(graph) {
    consumers_ = graph.consumers();
    is_output_.resize(graph.values.size());
    for (ir::ValueId output : graph.outputs) is_output_[static_cast<size_t>(output)] = 1;
  }

  bool run() {
    // In order of their first products, so that the result is deterministic.
    std::vector<std::vector<Linear>> groups;
    std::map<std::tuple<ir::ValueId, DType, size_t>, size_t> group_of;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      std::optional<Linear> linear = linear_of(static_cast<ir::NodeId>(n));
      if (!linear || !sliceable(linear->value)) continue;
      const ir::Value& value = value_of(linear->value);
      const auto [found, added] = group_of.try_emplace(
          std::make_tuple(linear->input, value.dtype, value.shape.size()), groups.size());
      if (added) groups.emplace_back();
      groups[found->second].push_back(std::move(*linear));
    }
    std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
    if (groups.empty()) return false;
    for (const auto& group : groups) build(group);
    editor_.place();
    Rewrite rewrite(graph_);
    for (const auto& [from, to] : replaced_) {
      rewrite.replace(from, to);
      rewrite.remove(value_of(from).producer);
    }
    rewrite.apply();
    eliminate_dead(graph_);
    return true;
  }

 private:
  ir::Value& value_of(ir::ValueId id) { return graph_.values[static_cast<size_t>(id)]; }
  ir::Node& node_of(ir::NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }

  std::optional<ir::Expr> body_of(ir::NodeId id) {
    const ir::Node& node = node_of(id);
    if (!node.def || !node.def->lower || node.outputs.size() != 1) return std::nullopt;
    const ir::Value& value = value_of(node.outputs[0]);
    if (value.is_constant() || value.shape.size() < 2 || !is_float(value.dtype)) {
      return std::nullopt;
    }
    ops::Lowering lowering(graph_, [&](ir::ValueId v) { return v == node.outputs[0]; });
    return lowering.element(node.outputs[0], ops::shared_index(graph_, node.outputs[0]));
  }

  // A constant vector along the last axis.
  ir::ValueId bias_read(ir::Expr e, const std::vector<ir::Expr>& axes) {
    if (e->op != ir::ExprOp::Read || e->args.empty() || e->args.back() != axes.back())
      return ir::kAbsent;
    for (size_t i = 0; i + 1 < e->args.size(); ++i) {
      if (!e->args[i]->is_constant(0)) return ir::kAbsent;
    }
    const auto id = static_cast<ir::ValueId>(e->integer);
    const ir::Value& value = value_of(id);
    const bool whole = value.is_constant() && value.constant.size() == value.shape.back()->integer;
    return whole && value.shape.back() == axes.back()->extent() ? id : ir::kAbsent;
  }

  bool set_contraction(Linear& linear, ir::Expr e, const std::vector<ir::Expr>& axes) {
    const auto product = as_contraction(pool_, e);
    if (!product || product->scale) return false;
    for (const auto& [a, b] : {std::pair(product->a, product->b), {product->b, product->a}}) {
      std::vector<ir::Expr> index = axes;
      index.back() = product->axis;
      const std::vector<ir::Expr> by_columns = {product->axis, axes.back()};
      const std::vector<ir::Expr> by_rows = {axes.back(), product->axis};
      linear.input = static_cast<ir::ValueId>(a->integer);
      linear.weight = static_cast<ir::ValueId>(b->integer);
      linear.by_rows = b->args == by_rows;
      if (a->args != index || (b->args != by_columns && !linear.by_rows)) continue;
      const ir::Value &input = value_of(linear.input), &weight = value_of(linear.weight);
      const DType dtype = value_of(linear.value).dtype;
      return !input.is_constant() && weight.is_constant() && input.dtype == dtype &&
             weight.dtype == dtype && weight.shape.size() == 2;
    }
    return false;
  }

  std::optional<Linear> linear_of(ir::NodeId id) {
    const std::optional<ir::Expr> body = body_of(id);
    if (!body || (*body)->bound_level == 0) return std::nullopt;
    Linear linear;
    linear.value = node_of(id).outputs[0];
    linear.nodes = {id};
    const std::vector<ir::Expr> axes = ops::shared_index(graph_, linear.value);
    if (axes.back()->op != ir::ExprOp::Axis) return std::nullopt;
    if (!value_of(linear.value).shape.back()->is_constant()) return std::nullopt;
    if (!split_sum(linear, *body, axes,
                   [&](ir::Expr e) { return set_contraction(linear, e, axes); })) {
      return std::nullopt;
    }
    if (linear.bias == ir::kAbsent) take_bias(linear, axes);
    return linear;
  }

  // body = main, or main + bias[n] in either order.
  template <typename IsMain>
  bool split_sum(Linear& linear, ir::Expr body, const std::vector<ir::Expr>& axes,
                 const IsMain& is_main) {
    if (is_main(body)) return true;
    if (body->op != ir::ExprOp::Add) return false;
    for (int i = 0; i < 2; ++i) {
      linear.bias = bias_read(body->args[static_cast<size_t>(1 - i)], axes);
      if (linear.bias != ir::kAbsent && is_main(body->args[static_cast<size_t>(i)])) return true;
    }
    linear.bias = ir::kAbsent;
    return false;
  }

  // If the only reader of the product adds a constant vector, the sum is the value of the linear
  // form.
  void take_bias(Linear& linear, const std::vector<ir::Expr>& axes) {
    const auto& readers = consumers_[static_cast<size_t>(linear.value)];
    if (readers.size() != 1 || is_output_[static_cast<size_t>(linear.value)]) return;
    const std::optional<ir::Expr> body = body_of(readers[0]);
    if (!body || value_of(node_of(readers[0]).outputs[0]).shape != value_of(linear.value).shape) {
      return;
    }
    ir::Expr product = pool_.read(linear.value, value_of(linear.value).dtype, axes);
    if (*body == product) return;
    if (split_sum(linear, *body, axes, [&](ir::Expr e) { return e == product; })) {
      linear.value = node_of(readers[0]).outputs[0];
      linear.nodes.push_back(readers[0]);
    }
  }

  // Every reader has a lowering, which can read a slice in place.
  bool sliceable(ir::ValueId id) {
    if (is_output_[static_cast<size_t>(id)]) return false;
    const auto& readers = consumers_[static_cast<size_t>(id)];
    return std::all_of(readers.begin(), readers.end(), [&](ir::NodeId reader) {
      const ir::Node& node = node_of(reader);
      return node.def != nullptr && node.def->lower != nullptr;
    });
  }

  ir::ValueId new_constant(const std::string& name, Tensor tensor) {
    return ops::add_constant(graph_, unique(name), std::move(tensor));
  }

  ir::ValueId new_node(const std::string& op, const Linear& from, const std::string& name,
                       std::vector<ir::ValueId> inputs, ir::NodeId before) {
    ir::Node node = ops::new_node_for(node_of(from.nodes[0]), op, std::move(inputs));
    node.name = name;
    return editor_.add(before, std::move(node), unique(value_of(from.value).name));
  }

  std::string unique(const std::string& name) {
    return fmt::format("{}/merged_{}", name, graph_.values.size());
  }

  static Tensor indices(int64_t value) {
    Tensor tensor(DType::Int64, {1});
    tensor.as<int64_t>()[0] = value;
    return tensor;
  }

  int64_t columns_of(const Linear& linear) { return value_of(linear.value).shape.back()->integer; }

  Tensor weights(const std::vector<Linear>& group) {
    std::vector<MatrixPart> parts;
    for (const Linear& linear : group) {
      parts.push_back({value_of(linear.weight).constant, linear.by_rows, columns_of(linear)});
    }
    const int64_t rows = parts[0].matrix.dims()[group[0].by_rows ? 1 : 0];
    return column_concat(rows, std::move(parts));
  }

  // Those of the merged weights, whose columns are their lines.
  std::shared_ptr<const ir::WeightCodes> codes(const std::vector<Linear>& group) {
    std::vector<std::shared_ptr<const ir::WeightCodes>> parts;
    for (const Linear& linear : group) {
      auto part = value_of(linear.weight).codes;
      if (!part || part->depth_axis != (linear.by_rows ? 1 : 0)) return nullptr;
      parts.push_back(std::move(part));
    }
    return side_by_side(parts);
  }

  Tensor biases(const std::vector<Linear>& group, int64_t columns) {
    Tensor all(value_of(group[0].value).dtype, {columns});
    char* to = static_cast<char*>(all.mutable_data());
    std::memset(to, 0, all.bytes());
    for (const Linear& linear : group) {
      if (linear.bias != ir::kAbsent) {
        const Tensor& bias = value_of(linear.bias).constant;
        std::memcpy(to, bias.data(), bias.bytes());
      }
      to += static_cast<size_t>(columns_of(linear)) * size_of(all.dtype());
    }
    return all;
  }

  void build(const std::vector<Linear>& group) {
    int64_t columns = 0;
    std::string name;
    ir::NodeId before = group[0].nodes[0];
    bool biased = false;
    for (const Linear& linear : group) {
      columns += columns_of(linear);
      biased |= linear.bias != ir::kAbsent;
      for (ir::NodeId node : linear.nodes) name += (name.empty() ? "" : " ") + node_of(node).name;
    }
    const std::string value_name = value_of(group[0].value).name;  // new values may move it
    const ir::ValueId weight = new_constant(value_name + "/weight", weights(group));
    value_of(weight).codes = codes(group);
    ir::ValueId all = new_node("MatMul", group[0], name, {group[0].input, weight}, before);
    if (biased) {
      const ir::ValueId bias = new_constant(value_name + "/bias", biases(group, columns));
      all = new_node("Add", group[0], name, {all, bias}, before);
    }
    int64_t column = 0;
    const auto last = static_cast<int64_t>(value_of(all).shape.size()) - 1;
    for (const Linear& linear : group) {
      const int64_t end = column + columns_of(linear);
      const ir::ValueId slice =
          new_node("Slice", linear, node_of(linear.nodes.back()).name,
                   {all, new_constant("from", indices(column)), new_constant("to", indices(end)),
                    new_constant("axis", indices(last))},
                   before);
      std::swap(value_of(slice).name, value_of(linear.value).name);
      replaced_.emplace_back(linear.value, slice);
      column = end;
    }
  }

  ir::Graph& graph_;
  ir::ExprPool& pool_;
  ops::GraphEditor editor_;
  std::vector<std::vector<ir::NodeId>> consumers_;
  std::vector<char> is_output_;
  std::vector<std::pair<ir::ValueId, ir::ValueId>> replaced_;
};

}  // namespace

bool merge_products(ir::Graph& graph) { return ProductMerger(graph).run(); }

}  // namespace redfuser::passes
