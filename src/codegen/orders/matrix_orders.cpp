#include "codegen/orders/matrix_orders.h"

#include <optional>
#include <utility>

namespace redfuser::codegen {
namespace {

// Nothing for row-major matrices of whole vectors.
std::optional<MemoryOrder> order_of(const ir::Value& value) {
  const bool half = is_float(value.dtype) && size_of(value.dtype) == 2;
  if (!half || !value.constant.defined() || value.codes || value.shape.size() != 2) return {};
  const Dims& dims = value.constant.dims();
  if (dims[0] < 2 || dims[1] < 2) return {};
  const auto whole = [&](size_t i) { return size_in_vectors(dims[i], value.dtype) == dims[i]; };
  if (whole(1) && whole(0)) return {};
  MemoryOrder order = {0, 1};
  if (!whole(1) && whole(0)) std::swap(order[0], order[1]);
  // Padding of few elements would be most of the bytes that kernels load.
  constexpr int64_t kVector = 8;
  order.padded = dims[0] > kVector && dims[1] > kVector;
  if (order == MemoryOrder{0, 1}) return {};
  return order;
}

}  // namespace

void order_matrices(const fuse::Plan& plan, const std::set<ir::ValueId>& excluded,
                    MemoryOrders& orders) {
  const auto order = [&](ir::Expr factor) {
    visit(factor, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      const auto id = static_cast<ir::ValueId>(e->integer);
      const ir::Value& value = plan.graph->values[static_cast<size_t>(id)];
      if (excluded.count(id) > 0) return;
      if (auto order = order_of(value)) orders[id] = std::move(*order);
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
