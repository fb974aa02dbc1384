// The CPU kernels of opaque operators, by name.
#pragma once

#include <string_view>

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

// The kernel of an operator, or null.
OpaqueFunction find_opaque(std::string_view domain, std::string_view name);

// Of operators that may also be computed by an expression; null for others, and without a kernel.
OpaqueCostFunction find_opaque_cost(std::string_view domain, std::string_view name);

}  // namespace redfuser::cpu
