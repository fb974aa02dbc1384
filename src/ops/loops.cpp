#include "ops/loops.h"

#include "ops/reindex.h"

namespace redfuser::ops {

Loops make_loops(const LowerContext& context, std::span<const ir::Expr> shape,
                 const std::vector<bool>& reduced, std::vector<ir::Expr> index) {
  ir::ExprPool& pool = context.pool();
  Loops loops{{}, std::move(index), pool.integer(1)};
  std::vector<size_t> group;
  auto close = [&] {
    if (group.empty()) return;
    Shape sizes;
    for (size_t d : group) sizes.push_back(shape[d]);
    ir::Expr extent = product_of(pool, sizes);
    ir::Expr axis = context.loop_axis(static_cast<int>(loops.axes.size()), extent);
    const auto at = reshape_index(pool, std::vector{extent}, sizes, std::vector{axis});
    for (size_t i = 0; i < group.size(); ++i) loops.index[group[i]] = at[i];
    loops.axes.push_back(axis);
    loops.count = pool.mul(loops.count, extent);
    group.clear();
  };
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d]->is_constant(1)) {
      loops.index[d] = pool.integer(0);
    } else if (reduced[d]) {
      group.push_back(d);
    } else {
      close();
    }
  }
  close();
  return loops;
}

ir::Expr reduce_over(ir::ExprPool& pool, ir::Reduction reduction, const Loops& loops,
                     ir::Expr body) {
  for (size_t i = loops.axes.size(); i-- > 0;) {
    body = pool.reduce(reduction, loops.axes[i], body);
  }
  return body;
}

ir::Expr mean_over(ir::ExprPool& pool, const Loops& loops, ir::Expr body) {
  ir::Expr sum = reduce_over(pool, ir::Reduction::Sum, loops, body);
  const DType wide = computing_type(sum->dtype);
  ir::Expr mean = pool.div(pool.cast(wide, sum), pool.cast(wide, loops.count));
  return pool.cast(sum->dtype, mean);
}

}  // namespace redfuser::ops
