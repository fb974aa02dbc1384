// Repeated layers of a model: equal blocks that follow one another in a sequence.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace redfuser::runtime {

struct Repeat {
  size_t begin = 0, period = 0, count = 0;  // blocks [begin + k·period, +period), k < count
};

// In order, without overlap. Blocks have at least kLeastPeriod elements, and those after the first
// kLeastGain together; of several ways to see a stretch, the one whose blocks after the first have
// most elements is taken, with the shorter blocks.
inline constexpr size_t kLeastPeriod = 4, kLeastGain = 16;
std::vector<Repeat> find_repeats(const std::vector<std::string>& sequence);

}  // namespace redfuser::runtime
