// Running sums and products along an axis.
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/sizes.h"

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
ir::Expr scan_along(LowerContext& context, int axis, ir::Expr loop) {
  ir::ExprPool& pool = context.pool();
  const bool exclusive = context.integer("exclusive", 0) != 0;
  const bool reverse = context.integer("reverse", 0) != 0;
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  ir::Expr here = index[axis];
  ir::Expr identity = pool.number(reduction == ir::Reduction::Prod ? 1 : 0, context.dtype(0));
  if (loop == nullptr) return exclusive ? identity : context.read(0, std::move(index));
  index[axis] = loop;
  ir::Expr visible = pool.make(exclusive ? ir::ExprOp::Less : ir::ExprOp::LessEqual,
                               {reverse ? here : loop, reverse ? loop : here});
  return pool.reduce(reduction, loop,
                     pool.select(visible, context.read(0, std::move(index)), identity));
}

template <ir::Reduction reduction>
ir::Expr lower_scan(LowerContext& context) {
  const int axis = context.axis(context.constant_integers(1)->front(), context.rank(0));
  ir::Expr size = context.shape(0)[axis];
  ir::Expr loop = size->is_constant(1) ? nullptr : context.loop_axis(0, size);
  return scan_along<reduction>(context, axis, loop);
}

// The same along an axis that is data: the sum along every axis, of which one is selected.
template <ir::Reduction reduction>
ir::Expr element_of_scan(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const int rank = context.rank(0);
  if (!is_float(context.dtype(0)) && !is_integer(context.dtype(0))) return nullptr;
  ir::Expr axis =
      from_end(pool, pool.cast(DType::Int64, only_element(context, 1)), pool.integer(rank));
  ir::Expr result = nullptr;
  for (int d = 0; d < rank; ++d) {
    ir::Expr along = scan_along<reduction>(context, d, context.loop_axis(d, context.shape(0)[d]));
    result =
        result == nullptr ? along : pool.select(equal(pool, axis, pool.integer(d)), along, result);
  }
  return result == nullptr ? context.read(0, {}) : result;
}

std::vector<Positions> scan_positions(const LowerContext& context) {
  return {index_positions(context, 1, context.pool().integer(context.rank(0)))};
}

constexpr OpDef kOpaqueSum =
    with_element(with_positions({"CumSum", "", 11, infer_scan, nullptr}, scan_positions),
                 element_of_scan<ir::Reduction::Sum>);
constexpr OpDef kOpaqueProduct =
    with_element(with_positions({"CumProd", "", 26, infer_scan, nullptr}, scan_positions),
                 element_of_scan<ir::Reduction::Prod>);

constexpr OpDef kOps[] = {
    {"CumSum", "", 11, infer_scan, lower_scan<ir::Reduction::Sum>, false, &kOpaqueSum},
    {"CumProd", "", 26, infer_scan, lower_scan<ir::Reduction::Prod>, false, &kOpaqueProduct},
};

}  // namespace

std::span<const OpDef> scan_ops() { return kOps; }

}  // namespace redfuser::ops
