// Two products of which the second one's left operand is the first one's result, as one kernel
// (src/device/product/chain.cuh).
#pragma once

#include <string>
#include <variant>

#include "codegen/product/library_product.h"

namespace redfuser::codegen {

struct ChainForm {
  ProductParts first, second;  // the second has one product
  ir::Expr rows = nullptr;
  int64_t depth = 0, inner = 0, width = 0;  // contracted axes of both, columns of the second
  // Weights are contiguous along the contracted axis; they alone are constants or inputs of the
  // graph.
  bool first_by_rows = false, second_by_rows = false, given = false;

  DType dtype() const { return first.calls[0].dtype; }
  int products() const { return static_cast<int>(first.calls.size()); }
};

// The form of two steps of `plan`, or why there is none. Whether others read the first result is
// not looked at.
std::variant<ChainForm, std::string> chain_form(StepBuilder& builder, const fuse::Plan& plan,
                                                const fuse::ProductStep& first,
                                                const fuse::ProductStep& second);

}  // namespace redfuser::codegen
