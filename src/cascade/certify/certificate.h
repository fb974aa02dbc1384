// The check of a fusion: the streaming form against the unfused body, on adversarial rows.
#pragma once

#include <string>

#include "cascade/streaming.h"

namespace redfuser::cascade {

struct Certificate {
  bool valid = false;
  int cases = 0;
  // Elements that a mask hides, over the cases that were folded without them as well.
  int64_t hidden = 0;
  double max_error = 0;  // relative, in double precision
  std::string failure;   // the first case that differs
};

// Runs both on adversarial rows (ties, zeros, infinities, NaN, huge, tiny, fully masked, one
// element, odd lengths) under several segmentations of the streamed axis. Of finite data the
// streaming form is also run without the hidden elements, for the first, a middle and the last row:
// kernels skip what hidden_elements.h finds. Deterministic.
Certificate certify(ir::ExprPool& pool, const Cascade& cascade, const Streaming& streaming);

// A text that is the same for cascades that differ only in the numbers of the values that they
// read.
std::string fingerprint(const ir::ExprPool& pool, const Cascade& cascade);

}  // namespace redfuser::cascade
