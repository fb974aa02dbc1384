// A row cascade whose result is the thin matrix of a product: every block of the product makes the
// rows itself (src/device/product/thin_rows.cuh).
#pragma once

#include <string>
#include <variant>

#include "codegen/functor/flat_streaming.h"
#include "codegen/product/library_product.h"
#include "codegen/product/thin_form.h"

namespace redfuser::codegen {

struct ThinRowsForm {
  FlatStreaming rows;  // with the lines as a further output
  int64_t lines = -1;  // a scratch value without memory: a block has them
  int64_t pitch = 0;   // elements from a line to the next
  ProductParts product;
  ThinForm thin;

  // Bytes of so many lines of a block.
  int64_t shared_bytes(int count) const {
    return count * pitch * static_cast<int64_t>(size_of(thin.dtype));
  }
};

// The form of two steps of `plan`, or why there is none: the product's few rows are one output of
// the cascade, element by element, and nothing else of the product is written by the cascade. The
// builder takes the scratch value.
std::variant<ThinRowsForm, std::string> thin_rows_form(StepBuilder& builder, const fuse::Plan& plan,
                                                       const fuse::CascadeStep& rows,
                                                       const fuse::ProductStep& product);

}  // namespace redfuser::codegen
