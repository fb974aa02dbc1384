// A matrix product on the tensor cores of sm_90 and an epilogue of any kind in one kernel.
#pragma once

#include <optional>

#include "codegen/step_builder.h"

namespace redfuser {

// value[offset] = epilogue over the product leaf, flat reads and the step's axes.
struct ProductEpilogue {
  Expr body, product;
  int64_t value;
  Expr offset;
};

// The kernel, or nullopt: for operands that the copy engine cannot fetch, for sizes that are not
// known, and, if the family is open, where the library's product and a map after it take less time
// by estimate. Of `call`, a, b and the sizes are used.
std::optional<KernelLaunch> product_kernel(StepBuilder& builder, const ProductStep& step,
                                           const ProductCall& call, const ProductEpilogue& epilogue,
                                           const std::string& comment);

}  // namespace redfuser
