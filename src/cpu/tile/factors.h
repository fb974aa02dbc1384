// The factors of a summand, for recognising matrix products.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace redfuser::cpu {

// expr = Π bound · Π free / Π divisors, where `free` and `divisors` do not depend on the axes.
// Casts between floating types are dropped: a product accumulates in float32 or float64 anyway.
struct Factors {
  std::vector<ir::Expr> bound, free, divisors;
};
Factors factors_of(ir::Expr expr, const std::vector<ir::Expr>& axes);

bool depends_on_any(ir::Expr expr, const std::vector<ir::Expr>& axes);

}  // namespace redfuser::cpu
