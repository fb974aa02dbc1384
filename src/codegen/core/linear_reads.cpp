#include "codegen/core/linear_reads.h"

#include <algorithm>

#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::codegen {
namespace {

// Whether an index consists of sums, products, quotients and remainders of axes and sizes, which
// lowerings keep in range.
bool plain_index(ir::Expr index) {
  if (index->op == ir::ExprOp::Axis || index->is_constant() || is_size(index)) return true;
  const bool plain = index->op == ir::ExprOp::Add || index->op == ir::ExprOp::Mul ||
                     index->op == ir::ExprOp::Sub || index->op == ir::ExprOp::FloorDiv ||
                     index->op == ir::ExprOp::FloorMod;
  return plain && std::all_of(index->args.begin(), index->args.end(), plain_index);
}

}  // namespace

ir::Expr LinearReads::in_range(ir::Expr index, ir::Expr dimension) {
  ir::ExprPool& pool = *graph_.pool;
  if (plain_index(index)) return index;
  if (!proved_nonnegative(index, ir::kWhereElementsExist))
    index = pool.make(ir::ExprOp::Max, {index, pool.integer(0)});
  if (!proved_less(pool, index, dimension, ir::kWhereElementsExist)) {
    index = pool.make(ir::ExprOp::Min, {index, pool.sub(dimension, pool.integer(1))});
  }
  return index;
}

ir::Expr LinearReads::flat(ir::Expr expr) {
  auto found = memo_.find(expr);
  if (found != memo_.end()) return found->second;
  ir::ExprPool& pool = *graph_.pool;
  ir::Expr result = pool.rewrite(expr, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Read || e->integer < 0 || e->integer >= kScratchValues) return nullptr;
    const auto& shape = graph_.values[static_cast<size_t>(e->integer)].shape;
    std::vector<ir::Expr> point;
    for (size_t i = 0; i < e->args.size(); ++i) {
      point.push_back(in_range(flat(e->args[i]), shape[i]));
    }
    return pool.read(e->integer, e->dtype, {offset_of(e->integer, point)});
  });
  memo_.emplace(expr, result);
  return result;
}

ir::Expr LinearReads::offset_of(int64_t value, const std::vector<ir::Expr>& point) const {
  const ir::Value& of = graph_.values[static_cast<size_t>(value)];
  std::vector<ir::Expr> shape = of.shape;
  if (const fuse::Append* append = target_.append_of(value)) shape[append->axis] = append->room;
  const MemoryOrder* order = target_.order_of(value);
  return row_major(*graph_.pool, in_memory(point, order),
                   memory_shape(*graph_.pool, shape, of.dtype, order));
}

std::optional<Strided> strided(ir::ExprPool& pool, ir::Expr offset,
                               const std::vector<ir::Expr>& axes) {
  Strided result{offset, {}};
  for (ir::Expr axis : axes) {
    if (axis->op != ir::ExprOp::Axis) {
      result.strides.push_back(pool.integer(0));
      continue;
    }
    auto affine = affine_in(pool, result.base, axis);
    if (!affine) return std::nullopt;
    result.strides.push_back(affine->stride);
    result.base = affine->base;
  }
  for (ir::Expr axis : axes) {
    if (axis->op != ir::ExprOp::Axis) continue;
    for (ir::Expr stride : result.strides) {
      if (stride->depends_on(axis)) return std::nullopt;
    }
  }
  return result;
}

}  // namespace redfuser::codegen
