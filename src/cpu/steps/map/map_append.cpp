#include "cpu/steps/map/map_append.h"

#include "cpu/tile/specialize.h"

namespace redfuser::cpu {

bool is_append(const GrowingSizes& sizes, const fuse::MapStep& step, ir::Expr body,
               const GrowingSizes::Append& append) {
  ir::ExprPool pool;
  Specializer specializer(pool, sizes.most, &sizes);
  std::vector<ir::Expr> at;
  for (ir::Expr axis : step.axes) at.push_back(specializer.copy(axis));
  const ir::Expr value = specializer.copy(body), begin = specializer.copy(append.begin);
  ir::Expr& along = at[append.axis];
  if (along->op != ir::ExprOp::Axis) return false;
  if (!pool.sub(along->extent(), begin)->is_constant()) return false;
  const ir::Expr earlier = pool.axis("p", begin);
  const ir::Expr read = pool.substitute(value, {{along, earlier}});
  along = earlier;
  return read->op == ir::ExprOp::Read && read->integer == append.past && read->args == at;
}

}  // namespace redfuser::cpu
