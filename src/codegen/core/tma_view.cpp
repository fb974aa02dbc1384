#include "codegen/core/tma_view.h"

#include <algorithm>
#include <map>

#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kUnit = 8;  // elements of 16 bytes
constexpr size_t kMaxCoordinates = 3;

bool aligned(ir::ExprPool& pool, ir::Expr size) {
  return pool.floormod(size, pool.integer(kUnit))->is_constant(0);
}

// The size of the dimension of an index. An upper bound suffices, because copies stay within it.
ir::Expr extent_of(ir::ExprPool& pool, ir::Expr index) {
  constexpr int64_t kBound = 1 << 24;
  if (index->op == ir::ExprOp::Axis) return index->extent();
  if (index->op == ir::ExprOp::FloorMod && is_size(index->args[1])) return index->args[1];
  if (index->op == ir::ExprOp::FloorDiv && index->args[0]->op == ir::ExprOp::Axis &&
      index->args[1]->is_constant()) {
    return ceil_div(pool, index->args[0]->extent(), index->args[1]->integer);
  }
  return pool.integer(kBound);
}

// The strides of an offset by index expression, and its terms without an index in `sizes`; nullopt
// if a term multiplies indices or is negative.
std::optional<std::map<ir::Expr, ir::Polynomial, ir::ById>> by_index(ir::Expr offset,
                                                                     ir::Polynomial& sizes) {
  std::map<ir::Expr, ir::Polynomial, ir::ById> strides;
  for (const auto& [monomial, coefficient] : to_polynomial(offset)) {
    ir::Expr index = nullptr;
    ir::Monomial rest;
    for (ir::Expr atom : monomial) {
      if (is_size(atom)) {
        rest.push_back(atom);
      } else if (index == nullptr) {
        index = atom;
      } else {
        return std::nullopt;
      }
    }
    if (coefficient < 0) return std::nullopt;
    ir::Polynomial& sum = index == nullptr ? sizes : strides[index];
    sum = sum + ir::Polynomial{{rest, coefficient}};
  }
  return strides;
}

}  // namespace

std::optional<TmaOperand> tma_operand(StepBuilder& builder, ir::Expr read, ir::Expr inner,
                                      ir::Expr line) {
  ir::ExprPool& pool = builder.pool();
  auto columns = affine_in(pool, read->args[0], inner);
  if (!columns || !columns->stride->is_constant(1) || columns->base->depends_on(inner)) {
    return std::nullopt;
  }
  auto lines = affine_in(pool, columns->base, line);
  if (!lines || !is_size(lines->stride) ||
      !proved_less(pool, pool.integer(0), lines->stride, ir::kWhereElementsExist) ||
      lines->base->depends_on(line)) {
    return std::nullopt;
  }
  ir::Polynomial constant;
  auto strides = by_index(lines->base, constant);
  if (!strides || strides->size() > kMaxCoordinates) return std::nullopt;
  TmaOperand result;
  result.view.buffer = builder.buffer(read->integer);
  result.view.dtype = read->dtype;
  result.view.offset = from_polynomial(pool, constant);
  result.view.dims = {inner->extent(), line->extent()};
  result.view.strides = {lines->stride};
  for (const auto& [index, stride] : *strides) {
    if (index->depends_on(inner) || index->depends_on(line)) return std::nullopt;
    result.view.dims.push_back(extent_of(pool, index));
    result.view.strides.push_back(from_polynomial(pool, stride));
    result.coordinates.push_back(index);
  }
  if (result.coordinates.empty()) {
    result.view.dims.push_back(pool.integer(1));
    result.view.strides.push_back(pool.mul(lines->stride, pool.integer(kUnit)));
    result.coordinates.push_back(pool.integer(0));
  }
  if (!aligned(pool, result.view.offset)) return std::nullopt;
  for (ir::Expr stride : result.view.strides) {
    if (!aligned(pool, stride)) return std::nullopt;
  }
  return result;
}

}  // namespace redfuser::codegen
