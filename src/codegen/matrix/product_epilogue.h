// What a kernel of ours computes of a product's sums.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace redfuser::codegen {

// value[offset] = body, an expression of the product leaves, flat reads and the step's axes.
struct ProductEpilogue {
  ir::Expr body;
  std::vector<ir::Expr> products;
  int64_t value;
  ir::Expr offset;
};

}  // namespace redfuser::codegen
