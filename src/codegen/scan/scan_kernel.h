// The text of the scan kernels.
#pragma once

#include "codegen/scan/scan_cost.h"

namespace redfuser::codegen {

// The numbers through which blocks that share lines meet: flags, then sums; -1 without.
struct ScanScratch {
  int64_t flags = -1, sums = -1;
};
// Entries of each: how many flags, and how many states.
struct ScanEntries {
  ir::Expr flags, sums;
};
ScanEntries scan_entries(ir::ExprPool& pool, const ScanForm& form, const ScanFacts& facts,
                         const ScanConfig& config);

// The flags are 0 when the kernel starts.
KernelLaunch scan_kernel(StepBuilder& builder, const ScanForm& form, const ScanFacts& facts,
                         const ScanConfig& config, const ScanScratch& scratch);

}  // namespace redfuser::codegen
