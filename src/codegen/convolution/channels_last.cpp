#include "codegen/convolution/channels_last.h"

#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {

int64_t copy_in_order(const ConvolutionStep& convolution, int64_t value, const MemoryOrder& order,
                      ir::Expr channels, const char* comment) {
  StepBuilder& builder = convolution.builder;
  ir::ExprPool& pool = builder.pool();
  const DType dtype = convolution.dtype();
  const std::vector<ir::Expr>& shape = builder.shape(value);
  std::vector<ir::Expr> point = axes_of(pool, shape, "i");
  point[1] = pool.axis("c", channels);
  std::vector<ir::Expr> axes;
  for (const int dimension : order) {
    const auto at = static_cast<size_t>(dimension);
    if (at < point.size()) axes.push_back(point[at]);
  }
  ir::Expr exists = nullptr;
  if (shape[1] != channels) {
    exists = pool.make(ir::ExprOp::Less, {point[1], shape[1]});
    point[1] = pool.make(ir::ExprOp::Min, {point[1], pool.sub(shape[1], pool.integer(1))});
  }
  ir::Expr body = pool.read(value, dtype, point);
  if (exists) body = pool.select(exists, body, pool.number(0, dtype));
  const std::vector<ir::Expr> extents = extents_of(pool, axes);
  const int64_t scratch = builder.add_scratch(dtype, product_of(pool, extents));
  add_map(builder, "channels_last", axes,
          {{scratch, builder.flat.flat(body), row_major(pool, axes, extents)}}, comment);
  return scratch;
}

}  // namespace redfuser::codegen
