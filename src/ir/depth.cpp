#include "ir/depth.h"

#include <algorithm>
#include <unordered_map>

namespace redfuser::ir {

ExprExtent expr_extent(Expr root) {
  std::unordered_map<Expr, ExprExtent> extents;
  visit(root, [&](Expr node) {
    ExprExtent extent{1, 1};
    for (Expr arg : node->args) {
      const auto known = extents.find(arg);
      if (known == extents.end()) continue;
      extent.depth = std::max(extent.depth, known->second.depth + 1);
      extent.size += known->second.size;
    }
    extents[node] = extent;
  });
  return extents[root];
}

}  // namespace redfuser::ir
