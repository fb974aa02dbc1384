#include "cascade/extract/axis_match.h"

namespace redfuser::cascade {

bool AxisMatch::match(ir::Expr a, ir::Expr b) {
  if (a == b && a->free_axes.empty()) return true;
  const bool shares = a->args.size() > 1;
  if (shares && matched_.count({a, b})) return true;
  if (a->op != b->op || a->args.size() != b->args.size()) return false;
  // A rank's value and its index are results of one reduction.
  const bool ranks = a->op == ir::ExprOp::Reduce && is_ranked(a->reduction);
  if (!ranks && a->dtype != b->dtype) return false;
  if (a->op == ir::ExprOp::Axis) {
    if (a == b) return true;
    auto known = map_.find(b);
    if (known != map_.end()) return known->second == a;
    if (a->extent() != b->extent() || !images_.insert(a).second) return false;
    map_.emplace(b, a);
    return true;
  }
  if ((!ranks && a->integer != b->integer) || a->reduction != b->reduction ||
      a->number != b->number || a->leaf_kind != b->leaf_kind) {
    return false;
  }
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (!match(a->args[i], b->args[i])) return false;
  }
  if (shares) matched_.emplace(a, b);
  return true;
}

}  // namespace redfuser::cascade
