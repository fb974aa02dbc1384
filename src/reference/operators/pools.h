// Pools.
#pragma once

#include <string_view>

#include "reference/operators/opaque.h"

namespace redfuser::reference {

// Null for other operators.
Lower pool_expression(std::string_view op);

}  // namespace redfuser::reference
