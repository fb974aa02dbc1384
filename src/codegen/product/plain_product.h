// Products as sums for each result: of operands that no family of products takes, and of many small
// matrices.
#pragma once

#include <string>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

inline constexpr const char* kPlainProductFamily = "plain_product";

// By points or by tiles of results, whichever takes less time by estimate.
void add_plain_product(StepBuilder& builder, const fuse::ProductStep& step,
                       const std::string& comment);

// Whether sums take much less time by estimate than what add_product adds, as for matrices that
// leave most of the library's tiles empty, and for sums of few terms. The sizes of a matrix must be
// known.
bool plain_product_pays(const StepBuilder& builder, const fuse::ProductStep& step,
                        const std::string& comment);

}  // namespace redfuser::codegen
