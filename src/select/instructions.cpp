#include "select/instructions.h"

#include "ir/scalars/operations.h"

namespace redfuser::select {

double instructions_of(ir::Expr e) {
  constexpr double kWideFloat = 2, kWideProduct = 4, kWide = 2;
  if (e->args.empty() || e->op == ir::ExprOp::Cast) return 0;
  const double costly = ir::scalar_op(e->op).costly ? kCostlyInstructions : 1;
  const DType dtype = e->args.back()->dtype;
  if (dtype == DType::Float64) return kWideFloat * costly;
  if (is_float(dtype) || dtype == DType::Bool) return costly;
  return e->op == ir::ExprOp::Mul ? kWideProduct : kWide;
}

}  // namespace redfuser::select
