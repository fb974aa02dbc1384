// The kernels of products whose rows are reduced where they are made.
#pragma once

#include "codegen/row_product/row_product_config.h"

namespace redfuser::codegen {

// The kernel of a configuration, for any number of rows; nullopt if TMA cannot load the operands.
std::optional<KernelLaunch> row_product_kernel(StepBuilder& builder, const RowProductForm& form,
                                               const RowProductConfig& config);

// Adds the kernels of the default, for all sizes; false if there are none.
bool add_row_product(StepBuilder& builder, const RowProductForm& form);

}  // namespace redfuser::codegen
