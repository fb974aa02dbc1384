#include "ops/loops.h"

#include "ops/reindex.h"

namespace redfuser {

Loops make_loops(const LowerContext& context, std::span<const Expr> shape,
                 const std::vector<bool>& reduced, std::vector<Expr> index) {
  ExprPool& pool = context.pool();
  Loops loops{{}, std::move(index), pool.integer(1)};
  std::vector<size_t> group;
  auto close = [&] {
    if (group.empty()) return;
    Shape sizes;
    for (size_t d : group) sizes.push_back(shape[d]);
    Expr extent = product_of(pool, sizes);
    Expr axis = context.loop_axis(static_cast<int>(loops.axes.size()), extent);
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

Expr reduce_over(ExprPool& pool, Reduction reduction, const Loops& loops, Expr body) {
  for (size_t i = loops.axes.size(); i-- > 0;) {
    body = pool.reduce(reduction, loops.axes[i], body);
  }
  return body;
}

Expr mean_over(ExprPool& pool, const Loops& loops, Expr body) {
  Expr sum = reduce_over(pool, Reduction::Sum, loops, body);
  const DType wide = computing_type(sum->dtype);
  Expr mean = pool.div(pool.cast(wide, sum), pool.cast(wide, loops.count));
  return pool.cast(sum->dtype, mean);
}

}  // namespace redfuser
