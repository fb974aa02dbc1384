// The epilogue of a product for groups of adjacent columns of a row: loads and stores of 16 bytes
// where rows are aligned.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/core/step_builder.h"
#include "codegen/matrix/product_epilogue.h"

namespace redfuser::codegen {

// Text in the emitter's current scope, which has `first`, the group's first column, `valid`, the
// number of its columns that exist from there on, and `vector`, whether accesses are aligned.
class GroupEpilogue {
 public:
  // All must outlive it. The epilogue reads nothing that it writes.
  GroupEpilogue(StepBuilder& builder, KernelText& kernel, Emitter& emitter,
                const fuse::ProductStep& step, ProductEpilogue epilogue);

  // Merges the row axes into one of `count` rows if the epilogue addresses memory by the number of
  // the row.
  void merge_rows(ir::Expr count);
  const std::vector<ir::Expr>& rows() const { return rows_; }
  const ProductEpilogue& epilogue() const { return epilogue_; }
  // Whether the columns of the result are consecutive elements.
  bool consecutive() { return first_of(epilogue_.offset) != nullptr; }

  // Loads the reads of consecutive columns that depend on the row, or the others. Declares
  // variables in place, or in `declared`.
  void load(int width, bool with_row, std::string* declared = nullptr);
  // Computes and stores `width` elements. `sum` is the text of element v of a product's sums.
  using SumText = std::function<std::string(size_t product)>;
  void write(int width, const SumText& sum);
  // Declares the array `name` and computes its `width` elements. `each` adds text behind one.
  void compute(int width, const SumText& sum, const std::string& name,
               const std::function<void()>& each = nullptr);
  // Whether all accesses so far are aligned for groups of `width` columns, as text.
  std::string all_aligned_text(int width);

 private:
  bool depends_on_row(ir::Expr e) const;
  // The offset at column 0, if columns are consecutive elements; else null.
  ir::Expr first_of(ir::Expr offset);
  void require(const std::string& buffer, ir::Expr base);

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  KernelText& kernel_;
  Emitter& emitter_;
  const fuse::ProductStep& step_;
  ProductEpilogue epilogue_;
  ir::Expr columns_;  // their number
  std::vector<ir::Expr> rows_;
  std::vector<std::pair<ir::Expr, std::string>> loaded_;
  std::vector<std::string> aligned_;
  std::vector<ir::Expr> units_;
};

}  // namespace redfuser::codegen
