// Operators that find the size of their results (GpuStep::found), and the kernels of selections
// (src/device/selection/selection.cuh).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/core/step_builder.h"
#include "ops/op_def.h"

namespace redfuser::codegen {

// As in the header.
inline constexpr int kSelectionThreads = 256, kSelectionTile = 2048;

// The scratch buffer, int64, of the size that the first output has along the dimension; at most
// `most`. UserError if `most` is constant and takes more than 4 GiB, or if the graph knows the
// size.
int64_t add_found_size(StepBuilder& builder, const ops::NodeView& view, size_t dimension,
                       ir::Expr most);

// Selects the points of `axes`, in row-major order, at which `flag` (Bool, over the axes) is true.
// How many there are goes to the scratch buffer `found`. `store` adds the text for one of them to
// an emitter, in which the point's number is `place`, that of selected points before it `number`,
// and that of all selected points `found`.
using StoreText = std::function<void(Emitter& emitter)>;
void add_selection(StepBuilder& builder, const std::vector<ir::Expr>& axes, ir::Expr flag,
                   int64_t found, const StoreText& store);

}  // namespace redfuser::codegen
