// Products of quantized numbers.
#pragma once

#include <string_view>

#include "reference/operators/opaque.h"

namespace redfuser::reference {

// Null for other operators.
Lower quantized_expression(std::string_view op);

}  // namespace redfuser::reference
