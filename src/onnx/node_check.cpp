#include "onnx/node_check.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"

namespace redfuser {

void check_node(const onnx::NodeProto& node, const std::string& domain, int version,
                const std::string& where) {
  const auto* registry = onnx::OpSchemaRegistry::Instance();
  const onnx::OpSchema* schema = registry->GetSchema(node.op_type(), version, domain);
  // A deprecated operator keeps the form that it had.
  while (schema != nullptr && schema->Deprecated()) {
    schema = registry->GetSchema(node.op_type(), schema->SinceVersion() - 1, domain);
  }
  if (schema == nullptr) return;
  try {
    schema->Verify(node);
  } catch (const std::exception& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    user_error("{}: {}", where, message);
  }
}

}  // namespace redfuser
