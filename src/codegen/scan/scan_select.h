// Which scan kernels compute a running reduction.
#pragma once

#include <vector>

#include "codegen/scan/scan_cost.h"

namespace redfuser::codegen {

// As kernel_configs.
std::vector<Candidate> scan_choices(StepBuilder& builder, const ScanForm& form,
                                    const KnownSizes& sizes);
// Adds the kernels: by default, or by one of the choices.
void add_scan(StepBuilder& builder, const ScanForm& form);
void add_scan(StepBuilder& builder, const ScanForm& form, const KernelConfig& choice);

}  // namespace redfuser::codegen
