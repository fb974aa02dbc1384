// Function bodies of our own, for operators outside the ONNX standard that real models use.
#pragma once

#include <memory>

namespace onnx {
class FunctionProto;
class NodeProto;
}  // namespace onnx

namespace redfuser {

// The body for this node, whose absent inputs and outputs and present attributes decide its form;
// null where there is none. Its operators are those of ai.onnx.
//
// com.microsoft operators follow ONNX Runtime's documentation of its contrib operators.
std::shared_ptr<const onnx::FunctionProto> own_expansion(const onnx::NodeProto& node);

}  // namespace redfuser
