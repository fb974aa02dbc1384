// Matrix products by the product library or a kernel of ours, and their epilogues.
#pragma once

#include <string>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

void generate_product(StepBuilder& builder, const fuse::ProductStep& step);

// c = Σ a·b by the product library. Operands that it cannot address are copied first; `result` is
// over Leaf Product 0 and the axes. `value` is a graph value.
void add_product(StepBuilder& builder, const fuse::ProductStep& product, int64_t value,
                 const std::string& comment);
// The same for flat expressions, into a value or scratch buffer at `offset` over the axes.
void add_product_at(StepBuilder& builder, const fuse::ProductStep& product, int64_t value,
                    ir::Expr offset, const std::string& comment);

}  // namespace redfuser::codegen
