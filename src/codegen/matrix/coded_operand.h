// Operands of products that are constants in few bits.
#pragma once

#include <memory>
#include <optional>

#include "fuse/plan.h"

namespace redfuser::codegen {

// Lines of a constant in few bits, from `first` on.
struct CodedOperand {
  std::shared_ptr<const ir::WeightCodes> codes;
  int64_t first = 0;
};

// The lines that a right operand of the step reads: element k of the product's column j is that of
// line first + j. nullopt for other operands, and for batches of products.
std::optional<CodedOperand> coded_operand(const ir::Graph& graph, const fuse::ProductStep& step,
                                          ir::Expr operand);

}  // namespace redfuser::codegen
