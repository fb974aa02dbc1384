// Matrix products by the product library or by a generated kernel, and their epilogues.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/core/step_builder.h"
#include "codegen/matrix/product_epilogue.h"

namespace redfuser::codegen {

// A product as kernels of ours take it (own_kernels.h).
struct ProductParts {
  fuse::ProductStep step;  // with the axes of the calls
  std::vector<ProductCall> calls;
  ProductEpilogue epilogue;
  std::string comment;
};
// nullopt where it is none of floats that tensor cores or fp32 units multiply. Operands without
// strides are copied by calls that the builder gets.
std::optional<ProductParts> product_parts(StepBuilder& builder, const fuse::ProductStep& step);

// Makes the calls and buffers after the first ones have the size 0 where `when`.
void leave_out_where(StepBuilder& builder, ir::Expr when, size_t first_call, size_t first_buffer);

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
