#include "onnx/check/node_check.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "onnx/check/attribute_domains.h"
#include "onnx/proto/attributes.h"

namespace redfuser::onnx {
namespace {

// From opset 18 on, a Split has either `num_outputs` or the input `split`.
void check_split(const ::onnx::NodeProto& node, int version, const std::string& where) {
  if (version < 18) return;
  const bool sizes = node.input_size() > 1 && !node.input(1).empty();
  const ::onnx::AttributeProto* count = find_attribute(node, "num_outputs");
  if (sizes == (count != nullptr)) {
    user_error("{}: it has {} the input split {} num_outputs; it needs one of the two", where,
               sizes ? "both" : "neither", sizes ? "and" : "nor");
  }
  if (count != nullptr && count->i() != node.output_size()) {
    user_error("{}: num_outputs is {}, but it has {} outputs", where, count->i(),
               node.output_size());
  }
}

}  // namespace

void check_node(const ::onnx::NodeProto& node, const std::string& domain, int version,
                const std::string& where) {
  const auto* registry = ::onnx::OpSchemaRegistry::Instance();
  const ::onnx::OpSchema* schema = registry->GetSchema(node.op_type(), version, domain);
  // A deprecated operator is checked against its last form.
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
  check_attribute_domains(node, domain, where);
  if (domain.empty() && node.op_type() == "Split") check_split(node, version, where);
}

}  // namespace redfuser::onnx
