// Equality of attributes by value.
#pragma once

#include "ir/graph.h"

namespace redfuser::ir {

// All bytes are equal, and dtype and dims.
bool same_tensor(const Tensor& a, const Tensor& b);
// False for tensors of strings.
bool same_attribute(const Attribute& a, const Attribute& b);
bool same_attributes(const Attributes& a, const Attributes& b);

}  // namespace redfuser::ir
