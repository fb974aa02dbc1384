#include "ops/reduce/factors.h"

#include <fmt/format.h>

#include "ops/elementwise.h"
#include "ops/sizes.h"

namespace redfuser::ops {

void check_factors(const NodeView& view) {
  check_operand(view, 0, Operand::Number);
  check_operand(view, 1, Operand::Number);
  if (view.dtype(0) != view.dtype(1)) {
    view.fail(fmt::format("inputs are of dtypes {} and {}", name_of(view.dtype(0)),
                          name_of(view.dtype(1))));
  }
}

std::string factors_text(const NodeView& view, int right) {
  return fmt::format("inner sizes of {} and {}", shape_text(view.pool(), view.shape(0)),
                     shape_text(view.pool(), view.shape(right)));
}

ir::Expr inner_size(ir::Expr a, ir::Expr b) { return b->is_constant() ? b : a; }

}  // namespace redfuser::ops
