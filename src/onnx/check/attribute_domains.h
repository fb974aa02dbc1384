// Attributes with a fixed set of values.
#pragma once

#include <string>

namespace onnx {
class NodeProto;
}

namespace redfuser::onnx {

// Throws UserError, starting with `where`, for a value outside of the set that ONNX defines for the
// attribute; kernels would take it for the default.
void check_attribute_domains(const ::onnx::NodeProto& node, const std::string& domain,
                             const std::string& where);

}  // namespace redfuser::onnx
