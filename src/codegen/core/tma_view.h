// Reads as tensor maps, of which TMA can copy boxes.
#pragma once

#include <optional>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// A flat read as a tensor of dimensions (inner, line, coordinates...). Axes without influence on
// the read have no dimension, so broadcast operands need no copy.
struct TmaOperand {
  TmaView view;                       // without its box
  std::vector<ir::Expr> coordinates;  // of the dimensions after the line, over other axes; 1 to 3
};

// nullopt unless the read is contiguous along `inner`, affine in `line`, strided in at most three
// other index expressions, and proved aligned to 16 bytes.
std::optional<TmaOperand> tma_operand(StepBuilder& builder, ir::Expr read, ir::Expr inner,
                                      ir::Expr line);

}  // namespace redfuser::codegen
