// Applies the operator's shape rule, then its lowering: small outputs of sizes alone get their
// elements as expressions, and outputs of any size without reads are marked as functions of their
// indices.
#include "ops/infer.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "ir/depth.h"
#include "ir/polynomial.h"
#include "ops/elementwise.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/sizes.h"
#include "ops/tensor_element.h"

namespace redfuser::ops {
namespace {

// Beyond these a symbolic result costs more than the tensor it replaces.
constexpr int64_t kMaxUnrolled = 4096;  // reduction terms over all elements of a value
constexpr int kMaxIndexedNodes = 400;   // distinct expressions in an indexed value's element

bool holds_numbers(DType dtype) { return size_of(dtype) != 0 && dtype != DType::String; }

void note_elements(ir::Graph& graph, ir::ValueId id) {
  ir::Value& value = graph.values[id];
  if (!value.is_constant() || value.has_elements || !holds_numbers(value.dtype)) return;
  if (value.constant.size() > ir::kMaxElements) return;
  value.elements = tensor_elements(*graph.pool, value.constant);
  value.has_elements = true;
}

void forget_contents(ir::Value& value) {
  value.constant = Tensor();
  value.elements.clear();
  value.has_elements = value.indexed = false;
}

// The terms that unrolling creates, with nested reductions multiplied; saturates above
// kMaxUnrolled.
int64_t reduction_terms(ir::Expr expr, std::unordered_map<ir::Expr, int64_t>& known) {
  const auto [entry, first] = known.try_emplace(expr, 0);
  if (!first) return entry->second;
  int64_t terms = 0;
  for (const ir::Expr arg : expr->args) {
    terms = std::min(terms + reduction_terms(arg, known), kMaxUnrolled + 1);
  }
  if (expr->op == ir::ExprOp::Reduce) {
    const ir::Expr extent = expr->extent();
    const int64_t size = extent->is_constant() ? extent->integer : kMaxUnrolled + 1;
    terms = std::min(std::min(size, kMaxUnrolled + 1) * (1 + terms), kMaxUnrolled + 1);
  }
  known[expr] = terms;
  return terms;
}

int64_t reduction_terms(ir::Expr expr) {
  std::unordered_map<ir::Expr, int64_t> known;
  return reduction_terms(expr, known);
}

// Σ_{l<n} f(l) = f(0) + ... + f(n-1), and likewise for products, maxima and minima.
ir::Expr unroll(ir::ExprPool& pool, ir::Expr reduction) {
  auto combine = [&](ir::Expr a, ir::Expr b) {
    switch (reduction->reduction) {
      case ir::Reduction::Sum:
        return element_operation(pool, ir::ExprOp::Add, {a, b});
      case ir::Reduction::Prod:
        return element_operation(pool, ir::ExprOp::Mul, {a, b});
      case ir::Reduction::Max:
        return max_of(pool, a, b);
      default:
        return pool.make(ir::ExprOp::Min, {a, b});
    }
  };
  const ir::Reduction kind = reduction->reduction;
  if (kind != ir::Reduction::Sum && kind != ir::Reduction::Prod && kind != ir::Reduction::Max &&
      kind != ir::Reduction::Min) {
    return nullptr;
  }
  ir::Expr axis = reduction->bound_axis(), result = nullptr;
  for (int64_t i = 0; i < axis->extent()->integer; ++i) {
    ir::Expr term = pool.substitute(reduction->body(), {{axis, pool.integer(i)}});
    result = result ? combine(result, term) : term;
  }
  return result;
}

// Replaces reads at constant positions by known elements, and innermost reductions by their terms,
// until nothing changes.
ir::Expr resolve(const ir::Graph& graph, ir::Expr expr) {
  ir::ExprPool& pool = *graph.pool;
  Lowering known(graph, [](ir::ValueId) { return false; });
  for (int round = 0; round < 8; ++round) {
    ir::Expr next = pool.rewrite(expr, [&](ir::Expr node) -> ir::Expr {
      if (node->op == ir::ExprOp::Read) {
        ir::Expr element = known.element(static_cast<ir::ValueId>(node->integer), node->args);
        return element == node ? nullptr : element;
      }
      return node->op == ir::ExprOp::Reduce ? unroll(pool, node) : nullptr;
    });
    if (next == expr) break;
    expr = next;
  }
  return expr;
}

// Whether the expression reads a value without known elements, so that unrolling cannot remove all
// reads.
bool reads_unknown(const ir::Graph& graph, ir::Expr expr) {
  bool found = false;
  visit(expr, [&](ir::Expr node) {
    if (node->op != ir::ExprOp::Read) return;
    const ir::Value& value = graph.values[static_cast<size_t>(node->integer)];
    const bool small = value.is_constant() && value.constant.size() <= ir::kMaxElements;
    found |= !value.has_elements && !value.indexed && !small;
  });
  return found;
}

bool has_reduce(ir::Expr expr) {
  bool found = false;
  visit(expr, [&](ir::Expr node) { found |= node->op == ir::ExprOp::Reduce; });
  return found;
}

// Elements that are expressions of elements nest as deep as the graph is long.
bool fits(ir::Expr element) { return element->args.empty() || expr_extent(element).fits(); }

// One element of a small output as an expression without reads; null if there is none.
ir::Expr propagated_element(const ir::Graph& graph, Lowering& lowering, ir::ValueId id,
                            std::vector<ir::Expr> index, int64_t count) {
  ir::Expr element = lowering.element(id, std::move(index));
  if (!element->has_read && element->bound_level == 0) return fits(element) ? element : nullptr;
  if (element->bound_level == 0 || reduction_terms(element) * count > kMaxUnrolled) return nullptr;
  if (reads_unknown(graph, element)) return nullptr;
  try {
    element = resolve(graph, element);
  } catch (const ir::CoefficientOverflow&) {
    return nullptr;  // elements that wrap around are computed, not derived
  } catch (const ir::ExprTooDeep&) {
    return nullptr;
  }
  return element->has_read || has_reduce(element) || !fits(element) ? nullptr : element;
}

std::vector<ir::Expr> index_at(ir::ExprPool& pool, const Shape& shape, int64_t position) {
  std::vector<ir::Expr> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = pool.integer(position % shape[i]->integer);
    position /= shape[i]->integer;
  }
  return index;
}

void propagate_elements(ir::Graph& graph, Lowering& lowering, ir::ValueId id) {
  ir::Value& value = graph.values[id];
  const auto count = constant_count(value.shape);
  if (!count || *count > ir::kMaxElements) return;
  std::vector<ir::Expr> elements;
  for (int64_t i = 0; i < *count; ++i) {
    ir::Expr element =
        propagated_element(graph, lowering, id, index_at(*graph.pool, value.shape, i), *count);
    if (!element) return;
    elements.push_back(element);
  }
  const bool constant =
      std::all_of(elements.begin(), elements.end(), [](ir::Expr e) { return e->is_constant(); });
  if (constant) {
    Dims dims;
    for (ir::Expr size : value.shape) dims.push_back(size->integer);
    value.constant = tensor_of(value.dtype, std::move(dims), elements);
  }
  value.elements = std::move(elements);
  value.has_elements = true;
}

bool is_function_of_index(ir::Graph& graph, Lowering& lowering, ir::ValueId id) {
  ir::Expr element = lowering.element(id, shared_axes(graph, id));
  if (element->has_read || element->bound_level != 0) return false;
  int nodes = 0;
  visit(element, [&](ir::Expr) { ++nodes; });
  return nodes <= kMaxIndexedNodes && fits(element);
}

}  // namespace

void set_constant(ir::Graph& graph, ir::ValueId id, Tensor tensor) {
  ir::Value& value = graph.values[id];
  value.dtype = tensor.dtype();
  value.shape.clear();
  for (int64_t size : tensor.dims()) value.shape.push_back(graph.pool->integer(size));
  value.constant = std::move(tensor);
  value.codes = nullptr;
  note_elements(graph, id);
}

static void infer_outputs(ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.nodes[id];
  RF_CHECK(node.def, "[{}] node \"{}\" has no definition", node.op, node.name);
  for (ir::ValueId input : node.inputs) {
    if (input != ir::kAbsent) note_elements(graph, input);
  }
  for (ir::ValueId output : node.outputs) {
    if (output != ir::kAbsent) forget_contents(graph.values[output]);
  }
  InferContext context(graph, node);
  node.def->infer(context);
  for (ir::ValueId output : node.outputs) {
    if (output == ir::kAbsent) continue;
    RF_CHECK(graph.values[output].dtype != DType::Undefined, "[{}] node \"{}\": no type for \"{}\"",
             node.op, node.name, graph.values[output].name);
    if (!node.def->lower || graph.values[output].is_constant()) continue;
    if (!holds_numbers(graph.values[output].dtype)) continue;
    Lowering lowering(graph, [output](ir::ValueId value) { return value == output; });
    propagate_elements(graph, lowering, output);
  }
  infer_indexed(graph, id);
}

void infer_node(ir::Graph& graph, ir::NodeId id) {
  try {
    infer_outputs(graph, id);
  } catch (const ir::CoefficientOverflow& error) {
    const ir::Node& node = graph.nodes[id];
    user_error("[{}] node \"{}\": {}", node.op, node.name, error.what());
  }
}

void infer_indexed(ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.nodes[id];
  for (ir::ValueId output : node.outputs) {
    if (output == ir::kAbsent || !node.def->lower || graph.values[output].is_constant()) continue;
    if (!holds_numbers(graph.values[output].dtype)) continue;
    Lowering lowering(graph, [output](ir::ValueId value) { return value == output; });
    const bool indexed = is_function_of_index(graph, lowering, output);
    graph.values[output].indexed = indexed;
  }
}

}  // namespace redfuser::ops
