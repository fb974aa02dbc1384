#include "codegen/core/linear_reads.h"

#include <algorithm>

#include "ir/polynomial.h"

namespace redfuser {
namespace {

// Sums, products, quotients and remainders of axes and sizes: lowerings keep such an index within
// its dimension.
bool plain_index(Expr index) {
  if (index->op == ExprOp::Axis || index->is_constant() || is_size(index)) return true;
  const bool plain = index->op == ExprOp::Add || index->op == ExprOp::Mul ||
                     index->op == ExprOp::Sub || index->op == ExprOp::FloorDiv ||
                     index->op == ExprOp::FloorMod;
  return plain && std::all_of(index->args.begin(), index->args.end(), plain_index);
}

}  // namespace

Expr FlatReads::in_range(Expr index, Expr dimension) {
  ExprPool& pool = *graph_.pool;
  if (plain_index(index)) return index;
  if (!proved_nonnegative(index, kWhereElementsExist))
    index = pool.make(ExprOp::Max, {index, pool.integer(0)});
  if (!proved_less(pool, index, dimension, kWhereElementsExist)) {
    index = pool.make(ExprOp::Min, {index, pool.sub(dimension, pool.integer(1))});
  }
  return index;
}

Expr FlatReads::flat(Expr expr) {
  auto found = memo_.find(expr);
  if (found != memo_.end()) return found->second;
  ExprPool& pool = *graph_.pool;
  Expr result = pool.rewrite(expr, [&](Expr e) -> Expr {
    if (e->op != ExprOp::Read || e->integer < 0 || e->integer >= kScratchValues) return nullptr;
    const auto& shape = graph_.values[static_cast<size_t>(e->integer)].shape;
    std::vector<Expr> point;
    for (size_t i = 0; i < e->args.size(); ++i) {
      point.push_back(in_range(flat(e->args[i]), shape[i]));
    }
    return pool.read(e->integer, e->dtype, {row_major(pool, point, shape)});
  });
  memo_.emplace(expr, result);
  return result;
}

Expr row_major(ExprPool& pool, const std::vector<Expr>& point, const std::vector<Expr>& dims) {
  Expr offset = pool.integer(0);
  for (size_t i = 0; i < dims.size(); ++i) offset = pool.add(pool.mul(offset, dims[i]), point[i]);
  return offset;
}

std::optional<Strided> strided(ExprPool& pool, Expr offset, const std::vector<Expr>& axes) {
  Strided result{offset, {}};
  for (Expr axis : axes) {
    if (axis->op != ExprOp::Axis) {
      result.strides.push_back(pool.integer(0));
      continue;
    }
    auto affine = affine_in(pool, result.base, axis);
    if (!affine) return std::nullopt;
    result.strides.push_back(affine->stride);
    result.base = affine->base;
  }
  for (Expr axis : axes) {
    if (axis->op != ExprOp::Axis) continue;
    for (Expr stride : result.strides) {
      if (stride->depends_on(axis)) return std::nullopt;
    }
  }
  return result;
}

}  // namespace redfuser
