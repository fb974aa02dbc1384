// Intervals of integer expressions of a step for fixed sizes, as numbers.
#pragma once

#include <functional>

#include "ir/interval.h"

namespace redfuser::cpu {

// Saturated: a bound of ±2^62 is unknown.
using Interval = ir::Interval<int64_t>;

// Over all indices of the axes.
Interval interval_of(ir::Expr expr);
// The same where the axes have intervals of their own.
using AxisIntervals = std::function<Interval(ir::Expr axis)>;
Interval interval_of(ir::Expr expr, const AxisIntervals& axes);
// Whether the exact result of an integer operation or cast may lie outside its type, so that it is
// to be wrapped around.
bool may_overflow(ir::Expr expr);

}  // namespace redfuser::cpu
