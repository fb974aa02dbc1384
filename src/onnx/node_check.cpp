#include "onnx/node_check.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"

namespace redfuser {

void check_node(const onnx::NodeProto& node, const std::string& domain, int version,
                const std::string& where) {
  const onnx::OpSchema* schema =
      onnx::OpSchemaRegistry::Instance()->GetSchema(node.op_type(), version, domain);
  if (schema == nullptr || schema->Deprecated()) return;
  try {
    schema->Verify(node);
  } catch (const std::exception& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    user_error("{}: {}", where, message);
  }
}

}  // namespace redfuser
