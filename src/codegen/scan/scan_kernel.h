// The text of the scan kernels.
#pragma once

#include "codegen/scan/scan_cost.h"

namespace redfuser::codegen {

// Words through which blocks that share lines meet, of 8 bytes.
ir::Expr scan_words(ir::ExprPool& pool, const ScanForm& form, const ScanFacts& facts,
                    const ScanConfig& config);

// `words` is their scratch buffer, 0 when the kernel starts; -1 where no lines are shared.
KernelLaunch scan_kernel(StepBuilder& builder, const ScanForm& form, const ScanFacts& facts,
                         const ScanConfig& config, int64_t words);

}  // namespace redfuser::codegen
