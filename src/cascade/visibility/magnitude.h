// Bounds of what expressions compute, from bounds of what they read.
#pragma once

#include <functional>

#include "ir/expr.h"

namespace redfuser::cascade {

// A bound of |e|, a Float64 Expr over what `known` returns: bounds of reads, or of any other part;
// null to derive the bound from the part's arguments. The result is +inf without a bound, and +inf
// or NaN where such a part is multiplied by 0.
using KnownBound = std::function<ir::Expr(ir::Expr part)>;
ir::Expr magnitude(ir::ExprPool& pool, ir::Expr e, const KnownBound& known);

// A bound of max(e, 0) likewise: what -inf or another negative number is added to stays below it.
ir::Expr upper_bound(ir::ExprPool& pool, ir::Expr e, const KnownBound& known);

}  // namespace redfuser::cascade
