#include "onnx/import/control_call.h"

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "ops/op_def.h"

namespace redfuser::onnx {
namespace {

constexpr const char* kNumber = "call";

void infer(ops::InferContext& context) {
  internal_error("[{}] node \"{}\" has the types that the import found", context.node().op,
                 context.node().name);
}

// A body may draw random numbers, so that no call is folded or merged with another.
constexpr ops::OpDef kDefinition{"call", "", 1, infer, nullptr, true};

}  // namespace

int64_t call_number(const ir::Node& node) {
  return node.def == &kDefinition ? std::get<int64_t>(node.attributes.at(kNumber)) : -1;
}

ir::Node call_node(const ::onnx::NodeProto& node, int opset, int64_t number) {
  ir::Node call;
  call.op = node.op_type();
  call.def = &kDefinition;
  call.opset = opset;
  call.attributes[kNumber] = number;
  return call;
}

}  // namespace redfuser::onnx
