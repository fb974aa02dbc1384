// The choices for a matrix product: the algorithms of the library, or a generated kernel.
#pragma once

#include <vector>

#include "codegen/product/product_kernel.h"

namespace redfuser::codegen {

// What the library proposes, the best first.
KernelConfig library_choice(int algorithm);

// As kernel_configs, for a ProductStep.
std::vector<Candidate> product_configs(const StepBuilder& builder, const fuse::ProductStep& step);

// The step by one of them.
void generate_product(StepBuilder& builder, const fuse::ProductStep& step,
                      const KernelConfig& choice);

}  // namespace redfuser::codegen
