// Checks of a node against its operator's ONNX schema.
#pragma once

#include <string>

namespace onnx {
class NodeProto;
}

namespace redfuser::onnx {

// Checks the number of inputs and outputs and the attributes' names, types and presence, and
// that they do not contradict the number of outputs. Operators without a schema pass. Throws
// UserError starting with `where`.
void check_node(const ::onnx::NodeProto& node, const std::string& domain, int version,
                const std::string& where);

}  // namespace redfuser::onnx
