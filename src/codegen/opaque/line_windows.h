// Reductions over windows of several dimensions, one dimension after the other:
// ⊕_{i,j} x[y + i, x + j] = ⊕_i h[y + i, x] with h[y, x] = ⊕_j x[y, x + j]. Neighbouring windows
// share the lines h, so that a window of a by b takes about a + b elements instead of a · b.
#pragma once

#include <functional>

#include "codegen/convolution/windows.h"
#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

struct WindowReduction {
  ir::Reduction reduction;
  ir::Expr outside;  // what elements outside of the input count as; of the type of the lines
  std::vector<ir::Expr> output, taps;
};

// The reduction at `output`, which reads lines that added kernels store in scratch memory.
ir::Expr reduced_by_lines(StepBuilder& builder, const ops::NodeView& view, const Windows& windows,
                          const WindowReduction& of);

// Whether add(builder, true), by lines, takes less time by estimate than add(builder, false), at
// nominal sizes where the builder does not know them.
bool lines_pay(const StepBuilder& builder, const ops::NodeView& view, const Windows& windows,
               const std::function<void(StepBuilder&, bool)>& add);

}  // namespace redfuser::codegen
