#include "ops/lowering.h"

#include <algorithm>

#include "base/error.h"
#include "ops/op_def.h"
#include "ops/tensor_element.h"

namespace redfuser::ops {
namespace {

// The row-major position of a constant index under a static shape; nullopt if one of them is
// symbolic.
std::optional<int64_t> constant_position(const ir::Value& value,
                                         const std::vector<ir::Expr>& index) {
  int64_t position = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index[i]->is_constant() || !value.shape[i]->is_constant()) return std::nullopt;
    const int64_t at = index[i]->integer, size = value.shape[i]->integer;
    if (at < 0 || at >= size) return std::nullopt;
    position = position * size + at;
  }
  return position;
}

// One element as a known expression; null if it is only in memory or not computed yet.
ir::Expr known_element(ir::ExprPool& pool, const ir::Value& value,
                       const std::vector<ir::Expr>& index) {
  if (!value.has_elements && !value.is_constant()) return nullptr;
  const auto position = constant_position(value, index);
  if (!position) return nullptr;
  if (value.has_elements) return value.elements[static_cast<size_t>(*position)];
  const bool small = value.constant.size() == 1 ||
                     (value.constant.size() <= ir::kMaxElements && !is_float(value.dtype));
  if (!small || value.dtype == DType::String) return nullptr;
  return tensor_element(pool, value.constant, *position);
}

}  // namespace

Lowering::Lowering(const ir::Graph& graph, Inline inlined)
    : graph_(graph), inlined_(std::move(inlined)) {}

ir::Expr Lowering::element(ir::ValueId id, std::vector<ir::Expr> index) {
  ir::ExprPool& pool = *graph_.pool;
  const ir::Value& value = graph_.values[id];
  RF_CHECK(index.size() == value.shape.size(), "value \"{}\" of rank {} is read at {} indices",
           value.name, value.shape.size(), index.size());
  for (size_t i = 0; i < index.size(); ++i) {
    if (value.shape[i]->is_constant(1)) index[i] = pool.integer(0);
  }
  if (ir::Expr known = known_element(pool, value, index)) return known;
  const bool computed = value.producer >= 0 && !value.is_constant();
  if (computed && graph_.nodes[value.producer].def->lower && (value.indexed || inlined_(id))) {
    return expand(id, index);
  }
  return pool.read(id, value.dtype, std::move(index));
}

ir::Expr Lowering::expand(ir::ValueId id, const std::vector<ir::Expr>& index) {
  const auto key = std::make_pair(id, index);
  auto found = memo_.find(key);
  if (found != memo_.end()) return found->second;
  const ir::Value& value = graph_.values[id];
  const ir::Node& node = graph_.nodes[value.producer];
  const LowerContext::Reader reader = [this](ir::ValueId input, std::vector<ir::Expr> at) {
    return element(input, std::move(at));
  };
  LowerContext context(graph_, node, value.output_index, index, reader);
  ir::Expr result = node.def->lower(context);
  RF_CHECK(result && result->dtype == value.dtype, "[{}] node \"{}\" lowers to {}, not {}", node.op,
           node.name, result ? name_of(result->dtype) : "nothing", name_of(value.dtype));
  memo_.emplace(key, result);
  return result;
}

std::vector<ir::Expr> output_axes(const ir::Graph& graph, ir::ValueId value) {
  std::vector<ir::Expr> axes;
  for (ir::Expr size : graph.values[value].shape) {
    axes.push_back(graph.pool->axis(fmt::format("i{}", axes.size()), size));
  }
  return axes;
}

std::vector<ir::Expr> shared_axes(const ir::Graph& graph, ir::ValueId value) {
  std::vector<ir::Expr> axes;
  for (ir::Expr size : graph.values[value].shape) {
    axes.push_back(graph.pool->shared_axis(fmt::format("index{}", axes.size()), size));
  }
  return axes;
}

std::vector<ir::Expr> shared_index(const ir::Graph& graph, ir::ValueId value) {
  std::vector<ir::Expr> index;
  for (ir::Expr size : graph.values[value].shape) {
    index.push_back(size->is_constant(1)
                        ? graph.pool->integer(0)
                        : graph.pool->shared_axis(fmt::format("i{}", index.size()), size));
  }
  return index;
}

}  // namespace redfuser::ops
