// Row cascades with one pass per reduction; a warp, a block or a cluster computes a row.
#pragma once

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

struct MultiPassConfig {
  int lanes = 256;    // threads that share a row in a block: 32, or the whole block
  int threads = 256;  // of a block
  int width = 4;      // consecutive elements of a thread
  int chunks = 1;     // groups of `width` per thread in registers; 0: each pass reads the row again
  int cluster = 1;    // blocks that share a row

  Parameters parameters() const {
    return {{"lanes", lanes},
            {"threads", threads},
            {"width", width},
            {"chunks", chunks},
            {"cluster", cluster}};
  }
};

// The kernel for rows up to lanes · chunks · width · cluster elements (any length if chunks is 0).
KernelLaunch multi_pass_kernel(StepBuilder& builder, const FlatStreaming& form,
                               const MultiPassConfig& config);

}  // namespace redfuser::codegen
