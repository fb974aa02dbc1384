// Scatters and selections.
#pragma once

#include <string_view>

#include "reference/operators/opaque.h"

namespace redfuser::reference {

// Null for other operators.
Direct move_function(std::string_view op);

}  // namespace redfuser::reference
