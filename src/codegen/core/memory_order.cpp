#include "codegen/core/memory_order.h"

#include "base/error.h"
#include "codegen/core/gpu_step.h"

namespace redfuser::codegen {

ir::Expr row_major(ir::ExprPool& pool, const std::vector<ir::Expr>& point,
                   const std::vector<ir::Expr>& dims) {
  ir::Expr offset = pool.integer(0);
  for (size_t i = 0; i < dims.size(); ++i) offset = pool.add(pool.mul(offset, dims[i]), point[i]);
  return offset;
}

std::vector<ir::Expr> in_memory(const std::vector<ir::Expr>& of_dimensions,
                                const MemoryOrder* order) {
  if (order == nullptr) return of_dimensions;
  RF_CHECK(order->size() == of_dimensions.size(), "an order of {} dimensions for {}", order->size(),
           of_dimensions.size());
  std::vector<ir::Expr> result;
  for (const int dimension : *order) {
    result.push_back(of_dimensions[static_cast<size_t>(dimension)]);
  }
  return result;
}

const MemoryOrder* Target::order_of(int64_t value) const {
  if (orders == nullptr) return nullptr;
  const auto found = orders->find(static_cast<ir::ValueId>(value));
  return found == orders->end() ? nullptr : &found->second;
}

const fuse::Append* Target::append_of(int64_t value) const {
  if (appends == nullptr) return nullptr;
  const auto found = appends->find(static_cast<ir::ValueId>(value));
  return found == appends->end() ? nullptr : &found->second;
}

}  // namespace redfuser::codegen
