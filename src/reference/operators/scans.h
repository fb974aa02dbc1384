// Running sums and products.
#pragma once

#include <string_view>

#include "reference/operators/opaque.h"

namespace redfuser::reference {

// Null for other operators.
Direct scan_function(std::string_view op);

}  // namespace redfuser::reference
