// The check of a fusion: the streaming form against the unfused body, on adversarial rows.
#pragma once

#include <string>
#include <unordered_map>

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

// Valid certificates of identities of arbitrary elements, which come again with other values.
// It serves one pool.
struct CertificateMemo {
  std::unordered_map<std::string, Certificate> of_elements;  // by structure
};

// Runs both on adversarial rows (ties, zeros, infinities, NaN, huge, tiny, fully masked, one
// element, odd lengths) under several segmentations of the streamed axis. Of finite data the
// streaming form is also run without the hidden elements, for the first, a middle and the last row:
// kernels skip what hidden_elements.h finds. Deterministic. `memo` may be null.
Certificate certify(ir::ExprPool& pool, const Cascade& cascade, const Streaming& streaming,
                    CertificateMemo* memo = nullptr);

// A key that is the same for cascades of one pool that differ only in the values that they read
// and in the identity of their axes.
std::string fingerprint(const Cascade& cascade);

}  // namespace redfuser::cascade
