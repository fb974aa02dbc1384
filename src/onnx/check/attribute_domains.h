// Attributes that take one of a few values.
#pragma once

#include <string>

namespace onnx {
class NodeProto;
}

namespace redfuser::onnx {

// Checks the values of attributes that ONNX gives a list of values to. A value outside of it would
// be taken for the default. Throws UserError that starts with `where`.
void check_attribute_domains(const ::onnx::NodeProto& node, const std::string& domain,
                             const std::string& where);

}  // namespace redfuser::onnx
