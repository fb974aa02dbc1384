#include "onnx/proto/type_support.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace redfuser::onnx {
namespace {

const char* type_text(DType dtype) {
  if (dtype == DType::Float16) return "tensor(float16)";
  if (dtype == DType::BFloat16) return "tensor(bfloat16)";
  internal_error("no type text of {}", name_of(dtype));
}

bool holds(const std::vector<std::string>& types, const std::string& type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// The prefix of ONNX's names of the types of the same kind. Every integer type is a kind of its
// own.
std::vector<std::string> kind_of(DType dtype) {
  if (dtype == DType::String) return {"tensor(string)"};
  if (dtype == DType::Sequence) return {"seq("};
  if (dtype == DType::Optional) return {"optional("};
  if (dtype == DType::Bool) return {"tensor(bool)"};
  if (is_low_bit_float(dtype)) return {"tensor(float8", "tensor(float4"};
  if (is_float(dtype)) return {"tensor(float", "tensor(double)", "tensor(bfloat16)"};
  return {fmt::format("tensor({})", name_of(dtype))};
}

// True if one of ONNX's types is of the same kind.
bool takes_kind(const ::onnx::DataTypeSet& types, DType dtype) {
  auto kind = kind_of(dtype);
  // The element type of an optional.
  kind.push_back("optional(");
  return std::any_of(types.begin(), types.end(), [&](const auto& type) {
    return std::any_of(kind.begin(), kind.end(),
                       [&](const std::string& start) { return type->starts_with(start); });
  });
}

DType dtype_of(const ir::Graph& graph, const ir::Node& node, size_t input) {
  return graph.values[static_cast<size_t>(node.inputs[input])].dtype;
}

// The type parameter that an input shares with others; empty if the schema names a type or the
// parameter is not shared.
std::string shared_parameter(const ::onnx::OpSchema& schema, size_t input) {
  const auto& formal = schema.inputs()[std::min(input, schema.inputs().size() - 1)];
  const std::string& type = formal.GetTypeStr();
  const bool is_parameter = type.find('(') == std::string::npos;
  return is_parameter && formal.GetIsHomogeneous() ? type : "";
}

DType wider(DType a, DType b) {
  if (a == b) return a;
  return a == DType::Float64 || b == DType::Float64 ? DType::Float64 : DType::Float32;
}

}  // namespace

void check_kinds_of_inputs(const ir::Graph& graph, const ir::Node& node) {
  const ::onnx::OpSchema* schema =
      ::onnx::OpSchemaRegistry::Instance()->GetSchema(node.op, node.opset, node.domain);
  if (schema == nullptr || schema->inputs().empty()) return;
  std::map<std::string, size_t> first;  // the input that determines a type parameter
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == ir::kAbsent) continue;
    const auto& parameter = schema->inputs()[std::min(i, schema->inputs().size() - 1)];
    const DType dtype = dtype_of(graph, node, i);
    if (!takes_kind(parameter.GetTypes(), dtype)) {
      user_error("[{}] node \"{}\": its input {} is of type {}, which it does not take", node.op,
                 node.name, i, name_of(dtype));
    }
    const std::string type = shared_parameter(*schema, i);
    if (type.empty() || is_list(dtype)) continue;
    const size_t other = first.emplace(type, i).first->second;
    if (dtype_of(graph, node, other) != dtype) {
      user_error("[{}] node \"{}\": its inputs {} and {} are of types {} and {}; they must be one",
                 node.op, node.name, other, i, name_of(dtype_of(graph, node, other)),
                 name_of(dtype));
    }
  }
}

std::vector<DType> common_float_types(const ir::Graph& graph, const ir::Node& node) {
  const ::onnx::OpSchema* schema =
      ::onnx::OpSchemaRegistry::Instance()->GetSchema(node.op, node.opset, node.domain);
  std::vector<DType> types(node.inputs.size(), DType::Undefined);
  std::map<std::string, DType> widest;  // by type parameter
  for (size_t i = 0; i < types.size(); ++i) {
    if (node.inputs[i] != ir::kAbsent) types[i] = dtype_of(graph, node, i);
    if (schema == nullptr || schema->inputs().empty() || !is_float(types[i])) continue;
    const auto [known, added] = widest.emplace(shared_parameter(*schema, i), types[i]);
    if (!added) known->second = wider(known->second, types[i]);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (widest.empty() || !is_float(types[i])) continue;
    const std::string parameter = shared_parameter(*schema, i);
    if (!parameter.empty()) types[i] = widest.at(parameter);
  }
  return types;
}

bool takes_type(const ir::Node& node, DType dtype) {
  const ::onnx::OpSchema* schema =
      ::onnx::OpSchemaRegistry::Instance()->GetSchema(node.op, node.opset, node.domain);
  if (schema == nullptr) return false;
  const std::string type = type_text(dtype);
  const auto& parameters = schema->typeConstraintParams();
  return std::all_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
    return !holds(parameter.allowed_type_strs, "tensor(float)") ||
           holds(parameter.allowed_type_strs, type);
  });
}

}  // namespace redfuser::onnx
