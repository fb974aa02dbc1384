// Which column kernels take a form: the least estimate where sizes are known, few that serve any
// size where they are not.
#pragma once

#include <vector>

#include "codegen/columns/column_cost.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

inline constexpr const char* kColumnFamily = "column";

// As kernel_configs.
std::vector<Candidate> column_configs(StepBuilder& builder, const ColumnForm& form,
                                      const KnownSizes& sizes);
// The kernels of one of them. Lengths that it has no room for are left to the default.
void add_columns(StepBuilder& builder, const ColumnForm& form, const KernelConfig& choice);
// Those of the default, for any sizes.
void add_columns(StepBuilder& builder, const ColumnForm& form);

}  // namespace redfuser::codegen
