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

int64_t size_in_vectors(int64_t size, DType dtype) {
  constexpr int64_t kVectorBytes = 16;
  const int64_t unit = kVectorBytes / static_cast<int64_t>(size_of(dtype));
  return (size + unit - 1) / unit * unit;
}

std::vector<ir::Expr> memory_shape(ir::ExprPool& pool, const std::vector<ir::Expr>& shape,
                                   DType dtype, const MemoryOrder* order) {
  std::vector<ir::Expr> result = in_memory(shape, order);
  if (order == nullptr || !order->padded) return result;
  for (ir::Expr& size : result) {
    RF_CHECK(size->is_constant(), "a padded value without constant sizes");
    size = pool.integer(size_in_vectors(size->integer, dtype));
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
