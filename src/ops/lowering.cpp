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

size_t ElementHash::operator()(const ElementAt& element) const {
  size_t hash = static_cast<size_t>(element.value);
  for (ir::Expr at : element.index) hash = (hash ^ at->id) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 32;
}

Lowering::Lowering(const ir::Graph& graph, Inline inlined, LoweringMemo* memo)
    : graph_(graph),
      inlined_(std::move(inlined)),
      memo_(memo != nullptr ? memo : &own_),
      number_(++memo_->lowerings_) {}

ir::Expr Lowering::element(ir::ValueId id, std::vector<ir::Expr> index) {
  return element(id, std::move(index), nullptr);
}

ir::Expr Lowering::element(ir::ValueId id, std::vector<ir::Expr> index,
                           std::vector<LoweringMemo::Read>* reads) {
  ir::ExprPool& pool = *graph_.pool;
  const ir::Value& value = graph_.values[id];
  RF_CHECK(index.size() == value.shape.size(), "value \"{}\" of rank {} is read at {} indices",
           value.name, value.shape.size(), index.size());
  for (size_t i = 0; i < index.size(); ++i) {
    if (value.shape[i]->is_constant(1)) index[i] = pool.integer(0);
  }
  if (ir::Expr known = known_element(pool, value, index)) return known;
  const bool computed = value.producer >= 0 && !value.is_constant();
  if (!computed || !graph_.nodes[value.producer].def->lower) {
    return pool.read(id, value.dtype, std::move(index));
  }
  auto& element = *memo_->elements_.try_emplace({id, std::move(index)}).first;
  ir::Expr result = result_of(element);
  if (reads != nullptr) reads->push_back({&element, result});
  return result;
}

ir::Expr Lowering::result_of(LoweringMemo::Elements::value_type& element) {
  auto& [at, entry] = element;
  if (entry.lowering == number_) return entry.result;
  const ir::Value& value = graph_.values[at.value];
  ir::Expr result = nullptr;
  if (value.indexed || inlined_(at.value)) {
    result = expand(element);
  } else {
    if (entry.read == nullptr) entry.read = graph_.pool->read(at.value, value.dtype, at.index);
    result = entry.read;
  }
  entry.lowering = number_;
  entry.result = result;
  return result;
}

// The result of an earlier lowering that read what this one would, if there is one. Values have no
// cycles: reading inputs adds nothing to this element.
ir::Expr Lowering::expand(LoweringMemo::Elements::value_type& element) {
  std::vector<LoweringMemo::Known>& known = element.second.known;
  const auto same = std::find_if(known.rbegin(), known.rend(), [&](const auto& earlier) {
    return std::all_of(earlier.reads.begin(), earlier.reads.end(),
                       [&](const auto& read) { return result_of(*read.element) == read.result; });
  });
  if (same != known.rend()) return same->result;
  return known.emplace_back(lowered(element.first)).result;
}

LoweringMemo::Known Lowering::lowered(const ElementAt& at) {
  const ir::Value& value = graph_.values[at.value];
  const ir::Node& node = graph_.nodes[value.producer];
  LoweringMemo::Known known;
  const LowerContext::Reader reader = [&](ir::ValueId input, std::vector<ir::Expr> index) {
    return element(input, std::move(index), &known.reads);
  };
  LowerContext context(graph_, node, value.output_index, at.index, reader);
  known.result = node.def->lower(context);
  RF_CHECK(known.result && known.result->dtype == value.dtype,
           "[{}] node \"{}\" lowers to {}, not {}", node.op, node.name,
           known.result ? name_of(known.result->dtype) : "nothing", name_of(value.dtype));
  return known;
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
