#include "codegen/matrix/matrix_orders.h"

namespace redfuser::codegen {
namespace {

bool has_ragged_rows(const ir::Value& value) {
  constexpr int64_t kVector = 8;  // elements of 16 bytes
  const bool half = is_float(value.dtype) && size_of(value.dtype) == 2;
  if (!half || !value.constant.defined() || value.codes || value.shape.size() != 2) return false;
  const Dims& dims = value.constant.dims();
  return dims[0] > 1 && dims[1] > 1 && dims[1] % kVector != 0 && dims[0] % kVector == 0;
}

}  // namespace

void order_matrices(const fuse::Plan& plan, const std::set<ir::ValueId>& excluded,
                    MemoryOrders& orders) {
  const auto order = [&](ir::Expr factor) {
    visit(factor, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      const auto id = static_cast<ir::ValueId>(e->integer);
      const ir::Value& value = plan.graph->values[static_cast<size_t>(id)];
      if (excluded.count(id) == 0 && has_ragged_rows(value)) orders[id] = {1, 0};
    });
  };
  for (const fuse::Step& step : plan.steps) {
    const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
    if (product == nullptr) continue;
    order(product->a);
    for (ir::Expr b : product->b) order(b);
  }
}

}  // namespace redfuser::codegen
