// Running sums and products along an axis.
#include "ops/arguments.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

// The lowering is along a known axis.
void infer_scan(InferContext& context) {
  const auto axis = context.constant_integers(1);
  const bool known = axis && axis->size() == 1;
  if (known) context.axis(axis->front(), context.rank(0));
  const DType dtype = context.dtype(0);
  if (!known || !(is_float(dtype) || is_integer(dtype))) context.choose_opaque();
  context.set(0, dtype, context.shape(0));
}

// ⊕_l of the elements at l <= i; l < i where exclusive, l >= i and l > i in reverse.
template <ir::Reduction reduction>
ir::Expr lower_scan(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const int axis = context.axis(context.constant_integers(1)->front(), context.rank(0));
  const bool exclusive = context.integer("exclusive", 0) != 0;
  const bool reverse = context.integer("reverse", 0) != 0;
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  ir::Expr size = context.shape(0)[axis], here = index[axis];
  ir::Expr identity = pool.number(reduction == ir::Reduction::Prod ? 1 : 0, context.dtype(0));
  if (size->is_constant(1)) return exclusive ? identity : context.read(0, std::move(index));
  ir::Expr loop = context.loop_axis(0, size);
  index[axis] = loop;
  ir::Expr visible = pool.make(exclusive ? ir::ExprOp::Less : ir::ExprOp::LessEqual,
                               {reverse ? here : loop, reverse ? loop : here});
  return pool.reduce(reduction, loop,
                     pool.select(visible, context.read(0, std::move(index)), identity));
}

constexpr OpDef kOpaqueSum{"CumSum", "", 11, infer_scan, nullptr};
constexpr OpDef kOpaqueProduct{"CumProd", "", 26, infer_scan, nullptr};

constexpr OpDef kOps[] = {
    {"CumSum", "", 11, infer_scan, lower_scan<ir::Reduction::Sum>, false, &kOpaqueSum},
    {"CumProd", "", 26, infer_scan, lower_scan<ir::Reduction::Prod>, false, &kOpaqueProduct},
};

}  // namespace

std::span<const OpDef> scan_ops() { return kOps; }

}  // namespace redfuser::ops
