// Axes of results as two digits.
#pragma once

#include <optional>
#include <vector>

#include "codegen/elementwise/map_shape.h"

namespace redfuser::codegen {

struct DividedStore {
  std::vector<ir::Expr> axes;
  Store store;
};

// The store over the digits of an axis whose quotient or remainder by a constant is in the body:
//
//   m = k·q + r, q < M / k, r < k:  ⌊m / k⌋ = q, m mod k = r
//
// A part of the body that depends on ⌊m / k⌋ is then free of r. Of several divisors it takes the
// least one; nullopt where none divides the axis.
std::optional<DividedStore> divide_axis(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                                        const Store& store);

}  // namespace redfuser::codegen
