#include "ir/depth.h"

#include <algorithm>

#include "ir/expr_map.h"

namespace redfuser::ir {

ExprExtent expr_extent(Expr root) {
  ExprMapTo<ExprExtent> extents;
  visit(root, [&](Expr node) {
    ExprExtent extent{1, 1};
    for (Expr arg : node->args) {
      const ExprExtent* known = extents.find(arg);
      if (known == nullptr) continue;
      extent.depth = std::max(extent.depth, known->depth + 1);
      extent.size += known->size;
    }
    extents.insert(node, extent);
  });
  return *extents.find(root);
}

}  // namespace redfuser::ir
