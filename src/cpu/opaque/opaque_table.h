// The CPU kernels of opaque operators, by name.
#pragma once

#include <string_view>

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

// The kernel of an operator, or null.
OpaqueFunction find_opaque(std::string_view domain, std::string_view name);

}  // namespace redfuser::cpu
