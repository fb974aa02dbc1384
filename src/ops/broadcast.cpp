// numpy broadcasting, aligned at the right. Two sizes that differ as expressions are equal at run
// time, or one of them is 1: the result's size is their maximum, and each operand is read at the
// index clamped to its own size.
#include "ops/broadcast.h"

#include <algorithm>

#include "base/error.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"
#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

// min(a, x) <= a, so max(a, min(a, x)) = a.
bool limited_by(ir::ExprPool& pool, ir::Expr limited, ir::Expr size) {
  if (proved_less_equal(pool, limited, size)) return true;
  return limited->op == ir::ExprOp::Min &&
         std::find(limited->args.begin(), limited->args.end(), size) != limited->args.end();
}

// Whether the size has no upper bound by its form alone: a symbol, and sums, products, quotients
// and maxima that grow with one.
bool grows(ir::Expr size) {
  const auto part_grows = [](ir::Expr part) { return part->is_constant() || grows(part); };
  const auto positive = [](ir::Expr part) { return !part->is_constant() || part->integer > 0; };
  switch (size->op) {
    case ir::ExprOp::Symbol:
      return true;
    case ir::ExprOp::Add:
      return std::all_of(size->args.begin(), size->args.end(), part_grows);
    case ir::ExprOp::Mul:
      return std::all_of(size->args.begin(), size->args.end(), part_grows) &&
             std::all_of(size->args.begin(), size->args.end(), positive);
    case ir::ExprOp::FloorDiv:
      return grows(size->args[0]) && size->args[1]->is_constant() && size->args[1]->integer > 0;
    case ir::ExprOp::Max:
      return std::any_of(size->args.begin(), size->args.end(), grows);
    default:
      return false;
  }
}

// A size that is 1 wherever an element exists: a slice of one element.
bool at_most_one(ir::ExprPool& pool, ir::Expr size) {
  return !grows(size) && proved_less_equal(pool, size, pool.integer(1));
}

ir::Expr broadcast_size(const NodeView& view, const Shape& left, const Shape& right, ir::Expr a,
                        ir::Expr b) {
  ir::ExprPool& pool = view.pool();
  if (a == b || b->is_constant(1)) return a;
  if (a->is_constant(1)) return b;
  if (a->is_constant() && b->is_constant()) {
    view.fail(fmt::format("shapes {} and {} do not broadcast", shape_text(pool, left),
                          shape_text(pool, right)));
  }
  if (a->is_constant()) return a;
  if (b->is_constant()) return b;
  // No size is negative.
  if (b == at_least_zero(pool, a)) return a;
  if (a == at_least_zero(pool, b)) return b;
  if (limited_by(pool, a, b) || at_most_one(pool, a)) return b;
  if (limited_by(pool, b, a) || at_most_one(pool, b)) return a;
  if (b->id < a->id) std::swap(a, b);
  return pool.make(ir::ExprOp::Max, {a, b});
}

// True for sizes such as min(max(64 - s, 0), 64) of the symbol s, with selections of its own.
bool is_clamp_of(ir::Expr size, ir::Expr symbol) {
  if (symbol->op != ir::ExprOp::Symbol) return false;
  bool chooses = false, refers = false;
  visit(size, [&](ir::Expr node) {
    chooses |= node->op == ir::ExprOp::Min || node->op == ir::ExprOp::Max ||
               node->op == ir::ExprOp::Select;
    refers |= node == symbol;
  });
  return chooses && refers;
}

}  // namespace

std::vector<ir::Expr> broadcast_shapes(const NodeView& view, const std::vector<ir::Expr>& a,
                                       const std::vector<ir::Expr>& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const size_t from_right = rank - i;
    if (from_right > a.size()) {
      result[i] = b[b.size() - from_right];
    } else if (from_right > b.size()) {
      result[i] = a[a.size() - from_right];
    } else {
      result[i] = broadcast_size(view, a, b, a[a.size() - from_right], b[b.size() - from_right]);
    }
  }
  return result;
}

std::vector<ir::Expr> InferContext::broadcast(const std::vector<ir::Expr>& a,
                                              const std::vector<ir::Expr>& b) {
  std::vector<ir::Expr> result = broadcast_shapes(*this, a, b);
  const std::string what = fmt::format("shapes {} and {} do not broadcast", shape_text(pool(), a),
                                       shape_text(pool(), b));
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    ir::Expr& size = result[result.size() - 1 - i];
    ir::Expr left = a[a.size() - 1 - i], right = b[b.size() - 1 - i];
    if (size != left && size != right) {
      if (is_clamp_of(right, left)) size = left;
      if (is_clamp_of(left, right)) size = right;
    }
    require_broadcast(left, size, what);
    require_broadcast(right, size, what);
  }
  return result;
}

ir::Expr LowerContext::read_broadcast(int input) const {
  return read(input, broadcast_index(pool(), shape(input), result().shape, index_));
}

std::vector<ir::Expr> broadcast_index(ir::ExprPool& pool, std::span<const ir::Expr> operand,
                                      std::span<const ir::Expr> result,
                                      std::span<const ir::Expr> index) {
  std::vector<ir::Expr> read(operand.size());
  const size_t skipped = result.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i) {
    ir::Expr size = operand[i], at = index[skipped + i];
    if (at_most_one(pool, size)) {
      read[i] = pool.integer(0);
    } else if (size == result[skipped + i]) {
      read[i] = at;
    } else {
      read[i] = pool.make(ir::ExprOp::Min, {at, pool.sub(size, pool.integer(1))});
    }
  }
  return read;
}

}  // namespace redfuser::ops
