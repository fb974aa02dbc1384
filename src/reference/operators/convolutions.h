// Convolutions.
#pragma once

#include <string_view>

#include "reference/operators/opaque.h"

namespace redfuser::reference {

// Null for other operators.
Lower convolution_expression(std::string_view op);

}  // namespace redfuser::reference
