// Reductions whose terms join elements of rows with elements of columns, whatever joins and reduces
// them: products of any type, distances, sums of which one factor is costly.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "codegen/elementwise/map_shape.h"

namespace redfuser::codegen {

// value[offset] = body, where body has one nest of reductions ⊕_k f(a.., b..). The a are free of
// the columns, the b of the rows.
struct ContractionForm {
  std::vector<ir::Expr> batch, rows, columns;  // the axes, in the order of the results' memory
  std::vector<ir::Expr> depth;                 // the reductions' axes, outermost first
  ir::Expr reduce;                             // the outermost one
  ir::Expr term;                               // of the innermost one
  std::vector<ir::Expr> a, b;                  // parts of the term, each once
  Store store;

  // Whether consecutive terms of a part's reads are adjacent in memory.
  static bool lies_along(ir::ExprPool& pool, const std::vector<ir::Expr>& parts, ir::Expr axis);
};

// The ways to divide the axes; or why there is none.
std::variant<std::vector<ContractionForm>, std::string> contraction_forms(
    ir::ExprPool& pool, const std::vector<ir::Expr>& axes, const Store& store);

}  // namespace redfuser::codegen
