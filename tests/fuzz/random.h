// The generator that mutations draw from.
#pragma once

#include <random>

namespace redfuser {

using Random = std::minstd_rand;

}  // namespace redfuser
