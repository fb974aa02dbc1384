// Sizes of the kernels of non-maximum suppression (src/device/selection/suppression.cuh).
#pragma once

namespace redfuser::codegen {

// As in the header.
inline constexpr int kSuppressionThreads = 256, kSuppressionTile = 64;

}  // namespace redfuser::codegen
