// RedFuser's own function bodies, for operators outside the ONNX standard and those of it whose
// body there does not compute every form.
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

// Domain and name of every operator with such a body, "Name" in the ONNX domain.
std::vector<std::string> own_expansion_names();

// True if the operator has a body; some of its forms may be unsupported.
bool has_own_expansion(const ::onnx::NodeProto& node);

// True if that body is taken in place of the one that ONNX defines.
bool replaces_standard_body(const ::onnx::NodeProto& node);

// The body for this node, whose absent inputs and outputs, attributes and ranks decide the form. It
// uses operators of ai.onnx. Throws UserError, starting with `where`, for an unsupported form; null
// if a kernel computes the form. Requires has_own_expansion.
//
// com.microsoft operators follow ONNX Runtime's documentation of its contrib operators.
std::shared_ptr<const ::onnx::FunctionProto> own_expansion(
    const ::onnx::NodeProto& node, const std::vector<::onnx::TypeProto>& input_types,
    const std::string& where);

}  // namespace redfuser::onnx
