// The length of a growing run in a step's expressions.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "cpu/growing/growing_sizes.h"
#include "ir/expr.h"

namespace redfuser::cpu {

// After a Specializer has copied a step for GrowingSizes, the extents of its axes and its indices
// are expressions of the length, so that what holds for every length is simplified. Then the length
// becomes an axis of its own, which a run fixes, and growing axes those of the greatest length.
class LengthAxis {
 public:
  LengthAxis(ir::ExprPool& pool, const GrowingSizes& sizes);

  // Of the lengths from the least to the greatest: the length less the least one.
  ir::Expr axis() const { return axis_; }
  ir::Expr placed(ir::Expr expr);
  void place(std::vector<ir::Expr>& expressions);
  // The extent in a run of an axis among those placed, as an expression of the pool's only symbol;
  // null of an axis that does not grow.
  ir::Expr extent(ir::Expr placed) const;
  // Whether every axis that grows, of all that were placed, is among these.
  bool all_grown_in(std::span<const ir::Expr> axes) const;

 private:
  ir::Expr grown(ir::Expr axis);

  ir::ExprPool& pool_;
  const int64_t most_;
  ir::Expr axis_;
  std::unordered_map<ir::Expr, ir::Expr> placed_, extents_;
};

// The symbol that stands for the length.
ir::Expr length_symbol(ir::ExprPool& pool);

}  // namespace redfuser::cpu
