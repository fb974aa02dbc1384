// One mutation of an input, for the target at hand (smoke_models.cpp, smoke_choices.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "random.h"

namespace redfuser {

// Changes `input`; `other` is another seed to take from.
void mutate_input(std::vector<uint8_t>& input, const std::vector<uint8_t>& other, Random& random);

// The same for bytes without structure.
void mutate_bytes(std::vector<uint8_t>& bytes, Random& random);

}  // namespace redfuser
