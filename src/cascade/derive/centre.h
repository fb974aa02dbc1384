// Second moments about the mean.
#pragma once

#include "cascade/cascade.h"

namespace redfuser::cascade {

// E[uv] - E[u]·E[v] = E[(u - E u)(v - E v)]: rewrites second moments whose uses cancel into centred
// ones, which lose no digits. Other uses of Σuv get Σuv = M + Σu·Σv/n.
Cascade centre_moments(ir::ExprPool& pool, const Cascade& cascade);

}  // namespace redfuser::cascade
