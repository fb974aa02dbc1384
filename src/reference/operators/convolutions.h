// Convolutions.
#pragma once

#include <string_view>

#include "reference/operators/opaque.h"

namespace redfuser::reference {

// Null for other operators.
Lower convolution_expression(std::string_view op);

// The sum of a QLinearConv, its bias included, as an Int32.
ir::Expr quantized_convolution(ops::LowerContext& context);

}  // namespace redfuser::reference
