// The kernels of steps: of the families that may compute a step, at each set of sizes the one whose
// time is the least by estimate, or by measurement.
#pragma once

#include <memory>

#include "cpu/step.h"

namespace redfuser::cpu {

// `graph` must outlive the kernel. Null for an AliasStep. UserError for an operator without a
// kernel.
std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::StepKind& kind);
// The same where a region may be divided into steps; `step` must outlive the kernel too.
std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::Step& step);

// A node without a lowering has one.
bool has_opaque_kernel(const ir::Node& node);

}  // namespace redfuser::cpu
