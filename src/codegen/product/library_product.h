// Matrix products by the product library or by a generated kernel, and their epilogues.
#pragma once

#include <string>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

void generate_product(StepBuilder& builder, const fuse::ProductStep& step);

// c = Σ a·b by the product library. Operands that it cannot address are copied first. `result` is
// an expression of Leaf Product 0 and the axes, `value` a graph value.
void add_product(StepBuilder& builder, const fuse::ProductStep& product, int64_t value,
                 const std::string& comment);
// The same for flat expressions, to a value or scratch buffer; `offset` is an expression of the
// axes.
void add_product_at(StepBuilder& builder, const fuse::ProductStep& product, int64_t value,
                    ir::Expr offset, const std::string& comment);

}  // namespace redfuser::codegen
