// The epilogue of a product for groups of adjacent columns of a row (src/device/maps/group.cuh).
#pragma once

#include <string>
#include <vector>

#include "codegen/elementwise/group_text.h"
#include "codegen/matrix/product_epilogue.h"

namespace redfuser::codegen {

class GroupEpilogue {
 public:
  // All must outlive it. The epilogue reads nothing that it writes.
  GroupEpilogue(Emitter& emitter, const fuse::ProductStep& step, ProductEpilogue epilogue);

  // Merges the row axes into one of `count` rows if the epilogue addresses memory by the number of
  // the row.
  void merge_rows(ir::Expr count);
  DType dtype() const { return emitter_.kernel().dtype_of(epilogue_.value); }
  const ProductEpilogue& epilogue() const { return epilogue_; }
  // Whether the columns of the result are consecutive elements.
  bool consecutive() const { return group_.first_of(epilogue_.offset) != nullptr; }

  // Adds loads of what depends on the columns of `group` alone, into values that `declared`
  // declares; finish() has no loads of them then.
  void load_columns(std::string& declared);
  // The text that computes `group` of the row `row`, whose sums are float sums[product][width], and
  // stores it, or writes it to the array `values`. `rounds`: to the types of the products first.
  std::string finish(bool rounds, const std::string& values = "");
  // Whether all accesses so far are aligned for groups of `width` columns, as text.
  std::string condition(int width) const { return group_.condition(width); }

 private:
  bool depends_on_row(ir::Expr e) const;

  ir::ExprPool& pool_;
  Emitter& emitter_;
  GroupText group_;
  ProductEpilogue epilogue_;
  std::vector<ir::Expr> rows_;
};

}  // namespace redfuser::codegen
