// MaxUnpool: zeros, and every maximum stored where its index says. Indices count within the tensor
// that the pool was made of; a larger output keeps its coordinates. Equal indices have no order.
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/opaque_kernels.h"
#include "ops/lowering.h"
#include "ops/sizes.h"

namespace redfuser::codegen {
namespace {

// The sizes of the pool's input: the output's where no other is asked for.
std::vector<ir::Expr> pooled_shape(const ops::NodeView& view) {
  ir::ExprPool& pool = view.pool();
  const auto kernel = view.integers("kernel_shape", {});
  const size_t rank = kernel.size();
  const auto strides = view.integers("strides", std::vector<int64_t>(rank, 1));
  const auto pads = view.integers("pads", std::vector<int64_t>(2 * rank, 0));
  std::vector<ir::Expr> shape{view.shape(0)[0], view.shape(0)[1]};
  for (size_t i = 0; i < rank; ++i) {
    ir::Expr before = pool.sub(view.shape(0)[i + 2], pool.integer(1));
    shape.push_back(pool.add(pool.mul(before, pool.integer(strides[i])),
                             pool.integer(kernel[i] - pads[i] - pads[rank + i])));
  }
  return shape;
}

}  // namespace

void generate_max_unpool(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const ir::ValueId value = view.node().outputs[0];
  const std::vector<ir::Expr> to = ops::output_axes(builder.graph, value);
  ir::Expr zero = pool.number(0, builder.dtype_of(value));
  add_map(builder, "zeros", to, {{value, zero, builder.offset_of(value, to)}}, "zeros\n");
  const std::vector<ir::Expr> from = ops::output_axes(builder.graph, view.node().inputs[0]);
  ir::Expr rest = pool.cast(DType::Int64, pool.read(view.node().inputs[1], view.dtype(1), from));
  const std::vector<ir::Expr> pooled = pooled_shape(view);
  std::vector<ir::Expr> target(pooled.size());
  for (size_t d = pooled.size(); d-- > 0;) {
    const ir::Expr at = d == 0 ? rest : pool.floormod(rest, pooled[d]);
    target[d] = ops::clamp_index(pool, at, builder.shape(value)[d]);
    rest = pool.floordiv(rest, pooled[d]);
  }
  ir::Expr x = pool.read(view.node().inputs[0], view.dtype(0), from);
  add_map(builder, "max_unpool", from,
          {{value, builder.flat.flat(x), builder.flat.flat(builder.offset_of(value, target))}},
          "max_unpool\n");
}

}  // namespace redfuser::codegen
