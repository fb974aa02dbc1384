#include "cascade/extract/split_rows.h"

#include <set>

#include "ir/expr_map.h"

namespace redfuser::cascade {
namespace {

// How the reductions of an expression see an axis.
struct Sight {
  std::set<ir::Expr> divisors;  // d of ⌊axis/d⌋
  bool whole = false;           // otherwise
};

class Look {
 public:
  explicit Look(ir::Expr axis) : axis_(axis) {}

  Sight of(ir::Expr body) {
    outside(body);
    return sight_;
  }

 private:
  void outside(ir::Expr e) {
    if (!e->depends_on(axis_) || !outside_.add(e)) return;
    if (e->op == ir::ExprOp::Reduce) return inside(e);
    for (ir::Expr arg : e->args) outside(arg);
  }

  void inside(ir::Expr e) {
    if (!e->depends_on(axis_) || !inside_.add(e)) return;
    if (e->op == ir::ExprOp::FloorDiv && e->args[0] == axis_ && e->args[1]->free_axes.empty() &&
        !e->args[1]->has_read) {
      sight_.divisors.insert(e->args[1]);
      return;
    }
    sight_.whole |= e == axis_;
    for (ir::Expr arg : e->args) inside(arg);
  }

  ir::Expr axis_;
  Sight sight_;
  ir::ExprMap outside_, inside_;
};

}  // namespace

std::vector<ir::Expr> split_rows(ir::ExprPool& pool, LoweredOutput& output, Axes axes) {
  std::vector<ir::Expr> loops;
  for (size_t i = 0; i < output.axes.size(); ++i) {
    ir::Expr axis = output.axes[i];
    if (axis->op != ir::ExprOp::Axis) continue;
    const Sight sight = Look(axis).of(output.body);
    ir::Expr divisor =
        sight.divisors.size() == 1 && !sight.whole ? *sight.divisors.begin() : nullptr;
    ir::Expr count = divisor ? pool.floordiv(axis->extent(), divisor) : nullptr;
    if (!divisor || pool.mul(count, divisor) != axis->extent()) {
      loops.push_back(axis);
      continue;
    }
    ir::Expr high = cascade_axis(pool, axes, "h", count, i);
    ir::Expr low = cascade_axis(pool, axes, "w", divisor, i);
    const std::vector<std::pair<ir::Expr, ir::Expr>> parts = {
        {axis, pool.add(pool.mul(high, divisor), low)}};
    output.body = pool.substitute(output.body, parts);
    for (ir::Expr& index : output.axes) index = pool.substitute(index, parts);
    loops.insert(loops.end(), {high, low});
  }
  return loops;
}

}  // namespace redfuser::cascade
