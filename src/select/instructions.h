// Instructions of scalar operations, as they are issued to the lanes of a multiprocessor.
#pragma once

#include "ir/expr.h"

namespace redfuser::select {

// A load waits for its offset and converts what it has read.
inline constexpr double kLoadInstructions = 4;
// Of a function such as an exponential, where it shares the lanes with other operations.
inline constexpr double kCostlyInstructions = 12;

// Of an operation with its arguments at hand. Integers are words of 64 bits, of which a product
// takes several instructions; a multiply and an add of floats are one.
double instructions_of(ir::Expr e);

}  // namespace redfuser::select
