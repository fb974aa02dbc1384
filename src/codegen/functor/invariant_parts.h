// Values of a row that its elements share: what a functor computes once and its elements read.
#pragma once

#include <vector>

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

struct InvariantPart {
  ir::Expr expr;
  bool divides = false;  // a divisor of elements, which have a Divisor (src/device/math.cuh) of it
};

// What a part must have to be worth a member: a read; or also leaves; or also coordinates alone.
enum class PartsWith { Reads, ReadsAndCoordinates, ReadsAndLeaves, Anything };

// The largest parts of `roots` that depend on none of `axes`. `fast`: quotients are computed by
// Divisors.
std::vector<InvariantPart> invariant_parts(const std::vector<ir::Expr>& roots,
                                           const std::vector<ir::Expr>& axes, PartsWith what,
                                           bool fast);

}  // namespace redfuser::codegen
