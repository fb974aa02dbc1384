#include "reference/operators/opaque.h"

#include "reference/operators/convolutions.h"
#include "reference/operators/moves.h"
#include "reference/operators/pools.h"
#include "reference/operators/scans.h"

namespace redfuser::reference {

Lower expression_of(const ir::Node& node) {
  if (!node.domain.empty()) return nullptr;
  if (const Lower convolution = convolution_expression(node.op)) return convolution;
  if (const Lower pool = pool_expression(node.op)) return pool;
  return node.def->element;
}

Direct function_of(const ir::Node& node) {
  if (!node.domain.empty()) return nullptr;
  if (const Direct move = move_function(node.op)) return move;
  return scan_function(node.op);
}

bool is_covered(const ir::Node& node) {
  return node.def->lower != nullptr || expression_of(node) != nullptr ||
         function_of(node) != nullptr || node.op == "Constant";
}

}  // namespace redfuser::reference
