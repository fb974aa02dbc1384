// The operators of a model that RedFuser cannot run, found before anything else happens.
#pragma once

#include <string>
#include <vector>

#include "onnx/functions/functions.h"

namespace redfuser::onnx {

// Walks the nodes `order` of the main graph and every function body that they reach. Throws one
// UnsupportedOperator that lists all of them with their number and the user's nodes.
void check_supported(const ::onnx::ModelProto& model, const std::vector<int>& order,
                     const FunctionLibrary& functions, const std::string& where);

// By node of the main graph: the unsupported operators that it needs, or nothing.
std::vector<std::string> unsupported_nodes(const ::onnx::ModelProto& model,
                                           const FunctionLibrary& functions,
                                           const std::string& where);

}  // namespace redfuser::onnx
