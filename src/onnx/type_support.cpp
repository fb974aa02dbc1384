#include "onnx/type_support.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"

namespace redfuser {
namespace {

const char* type_text(DType dtype) {
  if (dtype == DType::Float16) return "tensor(float16)";
  if (dtype == DType::BFloat16) return "tensor(bfloat16)";
  internal_error("no type text of {}", name_of(dtype));
}

bool holds(const std::vector<std::string>& types, const std::string& type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace

bool takes_type(const Node& node, DType dtype) {
  const onnx::OpSchema* schema =
      onnx::OpSchemaRegistry::Instance()->GetSchema(node.op, node.opset, node.domain);
  if (schema == nullptr) return false;
  const std::string type = type_text(dtype);
  const auto& parameters = schema->typeConstraintParams();
  return std::all_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
    return !holds(parameter.allowed_type_strs, "tensor(float)") ||
           holds(parameter.allowed_type_strs, type);
  });
}

}  // namespace redfuser
