// Function bodies of our own, for operators outside the ONNX standard that real models use.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace onnx {
class FunctionProto;
class NodeProto;
class TypeProto;
}  // namespace onnx

namespace redfuser::onnx {

// Domain and name of every operator with a body of ours, "Name" in the ONNX domain.
std::vector<std::string> own_expansion_names();

// True if there are bodies for the operator; a node may still be of a form that has none.
bool has_own_expansion(const ::onnx::NodeProto& node);

// The body for this node, whose absent inputs and outputs, attributes and ranks decide its form.
// Its operators are those of ai.onnx. Throws UserError, starting with `where`, for a form that has
// none; null where the operator's kernel serves it. Requires has_own_expansion.
//
// com.microsoft operators follow ONNX Runtime's documentation of its contrib operators.
std::shared_ptr<const ::onnx::FunctionProto> own_expansion(
    const ::onnx::NodeProto& node, const std::vector<::onnx::TypeProto>& input_types,
    const std::string& where);

}  // namespace redfuser::onnx
