// Pointwise steps that append to a value.
#pragma once

#include "cpu/growing/growing_sizes.h"

namespace redfuser::cpu {

// Whether the element of a step's output is, at the positions before `append.begin`, that of
// `append.past` at the same indices, whatever the length, and the further positions are as many for
// every length.
bool is_append(const GrowingSizes& sizes, const fuse::MapStep& step, ir::Expr body,
               const GrowingSizes::Append& append);

}  // namespace redfuser::cpu
