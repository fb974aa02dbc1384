// Terms as sums of products.
#pragma once

#include "ir/expr.h"

namespace redfuser::codegen {

// A term that chooses between two sums of at most two products, which share a factor pair by pair,
// as one sum of products: c ? x·p − y·q : x·q' + y·p' is x·(c ? p : q') + y·(c ? −q : p'). What is
// chosen is then of fewer axes, and its value is the same. Other terms are returned as they are.
ir::Expr distributed(ir::ExprPool& pool, ir::Expr term);

}  // namespace redfuser::codegen
