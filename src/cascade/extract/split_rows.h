// Output axes of which a row is only a digit.
#pragma once

#include <vector>

#include "cascade/extract/extract.h"

namespace redfuser::cascade {

// An output axis c that the reductions of the body see as ⌊c/d⌋ alone, such as the channels of a
// group, becomes two: c = high·d + low for low < d. Returns the output's axes, outermost first.
std::vector<ir::Expr> split_rows(ir::ExprPool& pool, LoweredOutput& output, Axes axes = Axes::Own);

}  // namespace redfuser::cascade
