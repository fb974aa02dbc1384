// Second moments about the mean.
#pragma once

#include "cascade/cascade.h"

namespace redfuser::cascade {

// E[uv] - E[u]·E[v] = E[(u - E u)(v - E v)]: replaces second moments by centred ones, M, where this
// difference would cancel. Other uses of Σuv become M + Σu·Σv/n.
Cascade centre_moments(ir::ExprPool& pool, const Cascade& cascade);

}  // namespace redfuser::cascade
