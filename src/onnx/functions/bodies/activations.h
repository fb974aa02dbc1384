// Activations that other operators name.
#pragma once

#include <string>
#include <vector>

#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {

// `result` = the activation of x that a fused operator names, with its parameters; x if the name is
// empty.
std::string activation_text(const ExpansionCall& call, const std::string& name,
                            const std::vector<float>& parameters, const std::string& x,
                            const std::string& result);

}  // namespace redfuser::onnx
