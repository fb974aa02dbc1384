// Nodes of any number of inputs as trees of nodes of few.
#pragma once

#include <memory>

namespace onnx {
class FunctionProto;
class NodeProto;
}  // namespace onnx

namespace redfuser::onnx {

// The body of a Sum, Mean, Max, Min or Concat of ai.onnx that has more inputs than one expression
// takes in: nodes of the same operator over up to 64 inputs or results each, in order. Null for
// every other node, an input that is absent included.
std::shared_ptr<const ::onnx::FunctionProto> wide_body(const ::onnx::NodeProto& node);

}  // namespace redfuser::onnx
