#include "cpu/opaque/opaque_shapes.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/dispatch.h"
#include "base/error.h"
#include "ir/evaluate.h"
#include "ops/infer.h"
#include "ops/op_def.h"

namespace redfuser::cpu {
namespace {

bool is_bound(std::span<const int64_t> symbols, ir::Expr symbol) {
  return symbol->integer < static_cast<int64_t>(symbols.size()) && symbols[symbol->integer] >= 0;
}

std::vector<ir::Expr> unbound_symbols(std::span<const int64_t> symbols, ir::Expr size) {
  std::vector<ir::Expr> unbound;
  if (size->op == ir::ExprOp::Constant) return unbound;
  if (size->op == ir::ExprOp::Symbol && is_bound(symbols, size)) return unbound;
  visit(size, [&](ir::Expr node) {
    if (node->op == ir::ExprOp::Symbol && !is_bound(symbols, node)) unbound.push_back(node);
  });
  return unbound;
}

void bind(std::vector<int64_t>& symbols, ir::Expr symbol, int64_t size) {
  if (static_cast<int64_t>(symbols.size()) <= symbol->integer) {
    symbols.resize(symbol->integer + 1, -1);
  }
  symbols[symbol->integer] = size;
}

// Solves size(symbol) == actual for a size that is linear in its one unbound symbol.
bool solve(std::vector<int64_t>& symbols, ir::Expr size, ir::Expr symbol, int64_t actual) {
  auto at = [&](int64_t value) {
    bind(symbols, symbol, value);
    return evaluate_size(size, symbols);
  };
  int64_t base = at(0), slope = at(1) - base;
  if (slope == 0 || (actual - base) % slope != 0 || (actual - base) / slope < 0 ||
      at((actual - base) / slope) != actual) {
    bind(symbols, symbol, -1);
    return false;
  }
  return true;
}

// The contents of a small tensor as constant expressions.
std::vector<ir::Expr> constant_elements(ir::ExprPool& pool, const Tensor& tensor) {
  std::vector<ir::Expr> elements;
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T* at = tensor.as<T>(); at != tensor.as<T>() + tensor.size(); ++at) {
      if constexpr (std::is_integral_v<T>) {
        elements.push_back(pool.number_int(static_cast<int64_t>(*at), tensor.dtype()));
      } else {
        elements.push_back(pool.number(static_cast<double>(*at), tensor.dtype()));
      }
    }
  });
  return elements;
}

// Sets an input of a node to its run-time sizes and, if it is small, contents; a value that is not
// in memory (inlined in a step) keeps those of the graph.
void describe_input(const RunContext& context, ir::ValueId input, ir::ExprPool& pool,
                    ir::Value& value) {
  const Tensor& tensor = context.values[input];
  Dims dims = tensor.defined() ? tensor.dims() : dims_of(context.graph, input, context.symbols);
  for (int64_t dim : dims) value.shape.push_back(pool.integer(dim));
  if (tensor.defined()) {
    if (tensor.size() > ir::kMaxElements || tensor.dtype() == DType::String) return;
    value.elements = constant_elements(pool, tensor);
    value.constant = tensor;
    value.has_elements = true;
    return;
  }
  const ir::Value& original = context.graph.values[input];
  if (!original.has_elements || is_float(original.dtype)) return;
  for (ir::Expr element : original.elements) {
    if (!unbound_symbols(context.symbols, element).empty()) return value.elements.clear();
    int64_t number = evaluate_size(element, context.symbols);
    value.elements.push_back(pool.number_int(number, original.dtype));
  }
  value.has_elements = true;
}

// A graph of this one node whose inputs are the tensors at hand.
ir::Graph concrete_graph(const RunContext& context, const ir::Node& node) {
  ir::Graph graph;
  graph.pool = std::make_shared<ir::ExprPool>();
  ir::Node copy = node;
  for (ir::ValueId& input : copy.inputs) {
    if (input == ir::kAbsent) continue;
    ir::ValueId id =
        graph.add_value(std::to_string(graph.values.size()), context.graph.values[input].dtype);
    describe_input(context, input, *graph.pool, graph.values[id]);
    graph.inputs.push_back(id);
    input = id;
  }
  for (size_t i = 0; i < copy.outputs.size(); ++i) {
    if (copy.outputs[i] == ir::kAbsent) continue;
    copy.outputs[i] = graph.add_value(std::to_string(graph.values.size()));
    graph.values[copy.outputs[i]].producer = 0;
    graph.values[copy.outputs[i]].output_index = static_cast<int>(i);
  }
  graph.nodes.push_back(std::move(copy));
  return graph;
}

}  // namespace

void bind_shape(RunContext& context, ir::ValueId value, const Dims& dims) {
  const ir::Value& target = context.graph.values[value];
  RF_CHECK(target.shape.size() == dims.size(), "value \"{}\" has rank {}, not [{}]", target.name,
           target.shape.size(), fmt::join(dims, ","));
  for (size_t i = 0; i < dims.size(); ++i) {
    ir::Expr size = target.shape[i];
    std::vector<ir::Expr> unbound = unbound_symbols(context.symbols, size);
    if (unbound.empty()) {
      int64_t known = evaluate_size(size, context.symbols);
      if (known != dims[i]) {
        user_error("value \"{}\": dimension {} is {} = {} elsewhere, but here the shape is [{}]",
                   target.name, i, to_string(*context.graph.pool, size), known,
                   fmt::join(dims, ","));
      }
    } else if (size->op == ir::ExprOp::Symbol) {
      bind(context.symbols, size, dims[i]);
    } else {
      bool solved = unbound.size() == 1 && solve(context.symbols, size, unbound[0], dims[i]);
      RF_CHECK(solved, "value \"{}\": cannot solve {} = {}", target.name,
               to_string(*context.graph.pool, size), dims[i]);
    }
  }
}

bool has_unbound_shape(const RunContext& context, const ir::Node& node) {
  for (ir::ValueId output : node.outputs) {
    if (output == ir::kAbsent) continue;
    for (ir::Expr size : context.graph.values[output].shape) {
      if (!unbound_symbols(context.symbols, size).empty()) return true;
    }
  }
  return false;
}

void bind_runtime_shape(RunContext& context, const ir::Node& node) {
  if (!has_unbound_shape(context, node)) return;
  ir::Graph concrete = concrete_graph(context, node);
  ops::infer_node(concrete, 0);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == ir::kAbsent) continue;
    Dims dims;
    for (ir::Expr size : concrete.values[concrete.nodes[0].outputs[i]].shape) {
      if (size->op != ir::ExprOp::Constant) {
        needs_values("[{}] node \"{}\": the shape of output \"{}\" does not follow from its inputs",
                     node.op, node.name, context.graph.values[node.outputs[i]].name);
      }
      dims.push_back(size->integer);
    }
    bind_shape(context, node.outputs[i], dims);
  }
}

}  // namespace redfuser::cpu
