// Expressions over whole tensors: reductions as tables, sums of products as Eigen's products.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"
#include "reference/expressions/blocks.h"

namespace redfuser::reference {

class Elements {
 public:
  // `tensors` by the numbers of Reads.
  Elements(ir::ExprPool& pool, std::vector<Tensor> tensors);

  // `expr` at every point of `axes`, which have constant sizes, as a tensor of these sizes. Its
  // type is Float64 for floats, else the expression's.
  //
  // Every reduction is computed once, at all points of the axes that it depends on. A sum of a
  // product of factors that depend on different axes is a product of matrices.
  Tensor values(ir::Expr expr, const std::vector<ir::Expr>& axes);

 private:
  ir::Expr without_reductions(ir::Expr expr);
  ir::Expr table(ir::Expr reduce);
  ir::Expr sorted_table(ir::Expr reduce);
  ir::Expr read_of(Tensor tensor, DType dtype, std::vector<ir::Expr> index);
  Source source() const;

  ir::ExprPool& pool_;
  std::deque<Tensor> tensors_;  // those given, then the tables
  std::unordered_map<ir::Expr, ir::Expr> tables_;
};

}  // namespace redfuser::reference
