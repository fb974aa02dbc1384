// A step for fixed sizes: expressions copied into a pool of their own with every symbol replaced by
// its value, so that strides, extents and ranges are plain numbers.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "cpu/growing/growing_sizes.h"
#include "ir/graph.h"

namespace redfuser::cpu {

// Copies expressions between pools. Axes of extent 1 become the integer 0.
class Specializer {
 public:
  // `growing`: null, or the sizes that stay expressions of length_symbol (cpu/growing).
  Specializer(ir::ExprPool& to, std::span<const int64_t> symbols,
              const GrowingSizes* growing = nullptr)
      : to_(to), symbols_(symbols), growing_(growing) {}

  ir::Expr copy(ir::Expr expr);
  // The copies of axes; axes of one element are left out.
  std::vector<ir::Expr> copy_axes(std::span<const ir::Expr> axes);

 private:
  ir::Expr build(ir::Expr expr);
  ir::Expr build_axis(ir::Expr axis);
  ir::Expr build_symbol(ir::Expr symbol);

  ir::ExprPool& to_;
  std::span<const int64_t> symbols_;
  const GrowingSizes* growing_;
  std::unordered_map<ir::Expr, ir::Expr> memo_;
};

// The numbers of the symbols that sizes of these expressions and values depend on, sorted.
std::vector<int64_t> symbols_of(const ir::Graph& graph, std::span<const ir::Expr> expressions,
                                std::span<const ir::ValueId> values);

// The constant value of an Int64 expression; InternalError if it is none.
int64_t constant_of(ir::Expr expr);
// The number of elements of a specialized axis.
int64_t extent_of(ir::Expr axis);
// The product of the extents.
int64_t extent_of(std::span<const ir::Expr> axes);

// The divisors d of ⌊axis/d⌋ and axis mod d in the expressions, and in them the moduli m of
// ⌊axis/d⌋ mod m (as d·m), sorted, those that each divide the next and the extent.
std::vector<int64_t> divisors_of(ir::Expr axis, const std::vector<ir::Expr*>& expressions);

// Splits axes that occur as ⌊x/d⌋ or x mod d, with d dividing the extent, into x = d·high + low, so
// that indices become affine. Rewrites `expressions` and replaces each split axis in `axes` by its
// parts, outermost first.
void split_axes(ir::ExprPool& pool, std::vector<ir::Expr>& axes,
                const std::vector<ir::Expr*>& expressions);

}  // namespace redfuser::cpu
