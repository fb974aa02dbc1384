// The kernels of thin products that make their lines themselves.
#pragma once

#include "codegen/product/thin_config.h"
#include "codegen/thin_rows/thin_rows_form.h"

namespace redfuser::codegen {

inline constexpr const char* kThinRowsFamily = "product_thin_rows";

// Rows that a kernel takes, as ThinClass: more than the class before has, `most` at most. One row
// is a class of its own, since all threads make it.
struct ThinRowsClass {
  int padded, most;
  ir::Expr when;
};
std::vector<ThinRowsClass> thin_rows_classes(ir::ExprPool& pool, const ThinRowsForm& form);

KernelLaunch thin_rows_kernel(StepBuilder& builder, const ThinRowsForm& form,
                              const ThinRowsClass& rows, const ThinConfig& config);

// As thin_choices, with the rows.
std::vector<Candidate> thin_rows_choices(const ThinRowsForm& form, const ThinRowsClass& rows,
                                         const KnownSizes& sizes, const Target& target);

}  // namespace redfuser::codegen
