// Reductions over windows in parts that neighbouring windows share: one dimension after the other,
//
//   ⊕_{i,j} x[y + i, x + j] = ⊕_i h[y + i, x] with h[y, x] = ⊕_j x[y, x + j],
//
// so that a window of a by b takes about a + b elements instead of a · b; and along a dimension by
// parts of c taps, of which r are left over,
//
//   ⊕_{k < n} x[o + k] = ⊕_{q < n / c} h[o + q·c] ⊕_{k < r} x[o + n - r + k], h[o] = ⊕_{k < c} x[o
//   + k],
//
// which takes about c + n / c elements instead of n.
#pragma once

#include <functional>

#include "codegen/convolution/windows.h"
#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

struct WindowReduction {
  ir::Reduction reduction;  // Sum or Max
  ir::Expr outside;         // what elements outside of the input count as; of the type of the lines
  std::vector<ir::Expr> output, taps;
  std::function<ir::Expr(ir::Expr)> term;  // of an element of the input, in the type of the lines
};

enum class WindowWay { Whole, Lines, Parts };

// The reduction at `output`, which reads what added kernels store in scratch memory.
ir::Expr reduced_by(WindowWay way, StepBuilder& builder, const ops::NodeView& view,
                    const Windows& windows, const WindowReduction& of);

// The way that takes the least time by estimate, where add(builder, way) adds its kernels; at
// nominal sizes where the builder does not know them.
WindowWay window_way(const StepBuilder& builder, const ops::NodeView& view, const Windows& windows,
                     const std::function<void(StepBuilder&, WindowWay)>& add);

}  // namespace redfuser::codegen
