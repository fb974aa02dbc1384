// The order of candidates.
#pragma once

#include <algorithm>
#include <vector>

#include "select/choice.h"

namespace redfuser::select {

// The fastest first; equal ones keep their order.
inline std::vector<Candidate> by_time(std::vector<Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
  return candidates;
}

}  // namespace redfuser::select
