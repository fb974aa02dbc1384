// Sums of separated terms, and their parts as expressions.
#pragma once

#include <vector>

#include "cascade/algebra/algebra.h"

namespace redfuser::cascade {

// Adds up terms with equal streamed parts (collection): their d parts become one sum.
std::vector<Term> collect(const StageScope& scope, std::vector<Term> terms);

// Products as expressions of dtype `dtype`; null lists are 1.
ir::Expr product(ir::ExprPool& pool, const std::vector<ir::Expr>& factors, DType dtype);
ir::Expr sum(ir::ExprPool& pool, const std::vector<ir::Expr>& terms, DType dtype);

// The dtype of states for values of `dtype`: Float64 and UInt64 stay, other floats become Float32,
// other integers Int64.
DType state_dtype(DType dtype);

}  // namespace redfuser::cascade
