#include "passes/integers/integer_contractions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/contraction.h"
#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/registry.h"
#include "passes/integers/integer_form.h"
#include "passes/integers/scaled_values.h"

namespace redfuser::passes {
namespace {

// Σ_k x · w + bias of a node, with constant weights.
struct FloatContraction {
  ir::ValueId x = ir::kAbsent, weights = ir::kAbsent, bias = ir::kAbsent;
  double scale = 1;
  bool is_convolution = false;
  bool by_rows = false;  // w[n, k] of a product
};

class ContractionRewriter {
 public:
  explicit ContractionRewriter(ir::Graph& graph)
      : graph_(graph), editor_(graph), consumers_(graph.consumers()) {}

  bool run() {
    const auto has_codes = [](const ir::Value& value) {
      return value.dtype == DType::Int8 || value.dtype == DType::UInt8;
    };
    if (std::none_of(graph_.values.begin(), graph_.values.end(), has_codes)) return false;
    const size_t nodes = graph_.nodes.size();
    for (size_t n = 0; n < nodes; ++n) rewrite(static_cast<ir::NodeId>(n));
    if (editor_.empty()) return false;
    editor_.place();
    return true;
  }

 private:
  const ir::Value& value_of(ir::ValueId id) { return graph_.values[static_cast<size_t>(id)]; }
  const ir::Node& node_of(ir::NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }

  void rewrite(ir::NodeId id) {
    const auto found = contraction_of(id);
    if (!found) return;
    const auto form = form_of(node_of(id), *found);
    if (!form || !is_faster(graph_, node_of(id), *form, reader_of(id))) return;
    const ir::Node origin = node_of(id);
    const std::string stem = value_of(origin.outputs[0]).name;
    const LastNode last = write_nodes(
        graph_, *form, stem,
        [&](const std::string& op, std::vector<ir::ValueId> inputs, ir::Attributes attributes) {
          ir::Node node = ops::new_node_for(origin, op, std::move(inputs));
          node.attributes = std::move(attributes);
          return editor_.add(id, std::move(node), stem + fmt::format("/{}", graph_.values.size()));
        });
    ir::Node node = ops::new_node_for(origin, last.op, last.inputs);
    node.outputs = origin.outputs;
    graph_.nodes[static_cast<size_t>(id)] = std::move(node);
  }

  // The only node that reads the result, where it has a lowering and one result of its sizes.
  const ir::Node* reader_of(ir::NodeId id) {
    const ir::ValueId value = node_of(id).outputs[0];
    const auto& readers = consumers_[static_cast<size_t>(value)];
    const auto& outputs = graph_.outputs;
    const bool given = std::find(outputs.begin(), outputs.end(), value) != outputs.end();
    if (readers.size() != 1 || given) return nullptr;
    const ir::Node& reader = node_of(readers[0]);
    if (!reader.def || !reader.def->lower || reader.outputs.size() != 1) return nullptr;
    return value_of(reader.outputs[0]).shape == value_of(value).shape ? &reader : nullptr;
  }

  std::optional<FloatContraction> contraction_of(ir::NodeId id) {
    const ir::Node& node = node_of(id);
    if (!node.def || node.outputs.size() != 1 || node.outputs[0] == ir::kAbsent) return {};
    const ir::Value& value = value_of(node.outputs[0]);
    if (value.is_constant() || value.dtype != DType::Float32) return {};
    if (!ops::has_channel_weights(node)) return product_of(node);
    const ir::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : ir::kAbsent;
    return FloatContraction{node.inputs[0], node.inputs[1], bias, 1, true};
  }

  // Σ_k x[.., k] · w[k, n], or w[n, k], times a constant; and a constant vector over n.
  std::optional<FloatContraction> product_of(const ir::Node& node) {
    const ir::ValueId output = node.outputs[0];
    if (!node.def->lower || value_of(output).shape.size() < 2) return {};
    const std::vector<ir::Expr> axes = ops::shared_index(graph_, output);
    if (axes.back()->op != ir::ExprOp::Axis) return {};
    ops::Lowering lowering(graph_, [&](ir::ValueId v) { return v == output; });
    ir::Expr body = lowering.element(output, axes);
    if (body->bound_level == 0) return {};
    FloatContraction result;
    if (body->op == ir::ExprOp::Add) {
      const size_t sum = body->args[0]->bound_level > 0 ? 0 : 1;
      result.bias = vector_of(body->args[1 - sum], axes.back());
      if (result.bias == ir::kAbsent) return {};
      body = body->args[sum];
    }
    while (body->op == ir::ExprOp::Mul) {
      const size_t sum = body->args[0]->bound_level > 0 ? 0 : 1;
      if (!body->args[1 - sum]->is_constant()) return {};
      result.scale *= body->args[1 - sum]->number;
      body = body->args[sum];
    }
    const auto sum = as_contraction(*graph_.pool, body);
    if (!sum || sum->scale) return {};
    for (const auto& [x, w] : {std::pair(sum->a, sum->b), {sum->b, sum->a}}) {
      if (is_product(x, w, sum->axis, axes, result)) return result;
    }
    return {};
  }

  static bool is_product(ir::Expr x, ir::Expr w, ir::Expr k, const std::vector<ir::Expr>& axes,
                         FloatContraction& result) {
    std::vector<ir::Expr> row = axes;
    row.back() = k;
    const std::vector<ir::Expr> by_columns = {k, axes.back()}, by_rows = {axes.back(), k};
    result.x = static_cast<ir::ValueId>(x->integer);
    result.weights = static_cast<ir::ValueId>(w->integer);
    result.by_rows = w->args == by_rows;
    return x->args == row && (result.by_rows || w->args == by_columns);
  }

  ir::ValueId vector_of(ir::Expr e, ir::Expr axis) {
    if (e->op != ir::ExprOp::Read || e->args.empty() || e->args.back() != axis) return ir::kAbsent;
    const auto id = static_cast<ir::ValueId>(e->integer);
    const ir::Value& value = value_of(id);
    const bool whole = value.is_constant() && value.shape.back() == axis->extent() &&
                       value.constant.size() == value.constant.dims().back();
    return whole ? id : ir::kAbsent;
  }

  std::optional<IntegerForm> form_of(const ir::Node& node, const FloatContraction& c) {
    const auto x = scaled_value(graph_, c.x);
    if (!x) return {};
    const auto w = scaled_weights(value_of(c.weights), c.is_convolution || c.by_rows ? 1 : 0);
    if (!w || !sums_fit(*x, *w)) return {};
    IntegerForm form;
    form.op = c.is_convolution ? "ConvInteger" : "MatMulInteger";
    if (c.is_convolution) form.attributes = node.attributes;
    form.codes = x->codes;
    form.floats = c.x;
    form.zero = Tensor(value_of(x->codes).dtype, {});
    *static_cast<uint8_t*>(form.zero.mutable_data()) = static_cast<uint8_t>(x->zero);
    form.weights = c.by_rows ? transposed(w->codes) : w->codes;
    form.weight_zeros = w->zeros;
    const Dims& dims = value_of(c.weights).constant.dims();
    const int64_t lines = dims[c.is_convolution || c.by_rows ? 0 : 1];
    Dims each{lines};
    for (size_t i = 2; c.is_convolution && i < dims.size(); ++i) each.push_back(1);
    const auto scale = static_cast<float>(c.scale * x->scale);
    form.scale = Tensor(DType::Float32, {});
    *form.scale.as<float>() = scale;
    form.weight_scale = Tensor(DType::Float32, each);
    const auto* scales = w->scales.as<float>();
    std::copy_n(scales, lines, form.weight_scale.as<float>());
    // Products that are rounded to few bits would lose what the floats have.
    for (int64_t i = 0; i < lines; ++i) {
      const bool zero = scales[i] == 0 || scale == 0;
      if (!zero && !std::isnormal(scales[i] * scale)) return {};
    }
    if (c.bias == ir::kAbsent) return form;
    if (!value_of(c.bias).is_constant() || value_of(c.bias).dtype != DType::Float32) return {};
    form.bias = value_of(c.bias).constant.reshaped(each);
    return form;
  }

  // No sum leaves int32.
  bool sums_fit(const ScaledValue& x, const ScaledWeights& w) {
    const int64_t low = value_of(x.codes).dtype == DType::Int8 ? -128 : 0;
    const int64_t most = std::max(x.zero - low, low + 255 - x.zero);
    return w.largest * most <= std::numeric_limits<int32_t>::max();
  }

  static Tensor transposed(const Tensor& bytes) {
    const int64_t rows = bytes.dims()[0], columns = bytes.dims()[1];
    Tensor result(bytes.dtype(), {columns, rows});
    const auto* from = static_cast<const uint8_t*>(bytes.data());
    auto* to = static_cast<uint8_t*>(result.mutable_data());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
    }
    return result;
  }

  ir::Graph& graph_;
  ops::GraphEditor editor_;
  const std::vector<std::vector<ir::NodeId>> consumers_;
};

}  // namespace

bool integer_contractions(ir::Graph& graph) { return ContractionRewriter(graph).run(); }

}  // namespace redfuser::passes
