// The kernels of integer products.
#pragma once

#include "codegen/integer_product/integer_config.h"

namespace redfuser::codegen {

// The kernel of a configuration, for any sizes.
KernelLaunch integer_kernel(StepBuilder& builder, const IntegerForm& form,
                            const IntegerConfig& config);

// Adds the kernels of the default, for all sizes.
void add_integer_product(StepBuilder& builder, const IntegerForm& form);

}  // namespace redfuser::codegen
