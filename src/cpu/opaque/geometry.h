// The geometry of windows over the spatial dimensions of images.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

// By dimension, from the attributes of a node over `rank` spatial dimensions; `pads` has the pads
// before all dimensions and then those after them. UserError for other numbers of entries and for
// strides and dilations below 1.
struct Geometry {
  std::vector<int64_t> strides, dilations, pads;
  Geometry(const OpaqueCall& call, size_t rank)
      : strides(call.small_integers("strides", std::vector<int64_t>(rank, 1))),
        dilations(call.small_integers("dilations", std::vector<int64_t>(rank, 1))),
        pads(call.small_integers("pads", std::vector<int64_t>(2 * rank, 0))) {
    if (strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank) {
      call.fail("strides, dilations or pads");
    }
    for (size_t i = 0; i < rank; ++i) {
      if (strides[i] < 1 || dilations[i] < 1) call.fail("strides and dilations must be positive");
    }
  }
};

}  // namespace redfuser::cpu
