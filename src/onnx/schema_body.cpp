#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "onnx/expansions.h"
#include "onnx/functions.h"
#include "onnx/scalar_constants.h"

namespace redfuser {
namespace {

const onnx::OpSchema* schema_of(const std::string& domain, const std::string& op, int version) {
  return onnx::OpSchemaRegistry::Instance()->GetSchema(op, version, domain);
}

int version_in(const Opsets& opsets, const std::string& domain) {
  const auto found = opsets.find(domain);
  return found == opsets.end() ? 0 : found->second;
}

// A schema may carry bodies written for several opsets: the newest one that is not newer than the
// file's, or the oldest where all are newer. Operators of the body keep the opset they are written
// for, so either is right.
int best_version(std::vector<int> versions, int wanted) {
  std::sort(versions.begin(), versions.end());
  const auto above = std::upper_bound(versions.begin(), versions.end(), wanted);
  return above == versions.begin() ? versions.front() : *(above - 1);
}

// The file's opset where it means the same for every operator of the body; then an expanded graph
// has one opset.
int common_version(const onnx::FunctionProto& body, int written_for, int wanted) {
  for (const auto& node : body.node()) {
    const std::string domain = normal_domain(node.domain());
    if (!domain.empty()) continue;
    if (schema_of(domain, node.op_type(), written_for) !=
        schema_of(domain, node.op_type(), wanted)) {
      return written_for;
    }
  }
  return wanted;
}

bool has_open_size(const onnx::TypeProto& type) {
  const auto& dims = type.tensor_type().shape().dim();
  return std::any_of(dims.begin(), dims.end(),
                     [](const auto& dim) { return !dim.has_dim_value(); });
}

// Attributes that a node leaves out have the schema's defaults inside the body too.
void add_defaults(onnx::FunctionProto& function, const onnx::OpSchema& schema) {
  for (const auto& [name, attribute] : schema.attributes()) {
    if (attribute.default_value.has_name())
      *function.add_attribute_proto() = attribute.default_value;
  }
}

FunctionBody schema_body(const onnx::OpSchema& schema, const onnx::NodeProto& node,
                         const Opsets& file_opsets, const std::vector<onnx::TypeProto>& types,
                         const std::string& where) {
  const int wanted = version_in(file_opsets, schema.domain());
  auto function = std::make_shared<onnx::FunctionProto>();
  int version = 0;
  if (schema.HasFunction()) {
    version = best_version(schema.function_opset_versions(), wanted);
    *function = *schema.GetFunction(version, false);
  } else {
    version = best_version(schema.context_dependent_function_opset_versions(), wanted);
    const onnx::FunctionBodyBuildContextImpl context(node, types);
    if (!schema.BuildContextDependentFunction(context, *function, version)) {
      if (std::any_of(types.begin(), types.end(), has_open_size)) {
        needs_values("{}: its function body depends on sizes that only a run knows", where);
      }
      user_error("{}: ONNX has no function body for these attributes and input types", where);
    }
  }
  add_defaults(*function, schema);
  make_scalars(*function);
  Opsets opsets = opsets_of(*function);
  if (schema.domain().empty()) {
    opsets[""] = common_version(*function, version, wanted);
  } else {
    opsets.emplace("", version_in(file_opsets, ""));
  }
  return {std::move(function), std::move(opsets)};
}

}  // namespace

bool has_body(const onnx::NodeProto& node, const Opsets& opsets) {
  const std::string domain = normal_domain(node.domain());
  const int version = version_in(opsets, domain);
  const onnx::OpSchema* schema = schema_of(domain, node.op_type(), version);
  return (schema && (schema->HasFunction() || schema->HasContextDependentFunction())) ||
         has_own_expansion(node);
}

bool has_fixed_body(const onnx::NodeProto& node, const Opsets& opsets) {
  const std::string domain = normal_domain(node.domain());
  const onnx::OpSchema* schema = schema_of(domain, node.op_type(), version_in(opsets, domain));
  return schema && schema->HasFunction();
}

FunctionBody body_of(const onnx::NodeProto& node, const Opsets& opsets,
                     const std::vector<onnx::TypeProto>& input_types, const std::string& where,
                     bool optional) {
  const std::string domain = normal_domain(node.domain());
  const int version = version_in(opsets, domain);
  const onnx::OpSchema* schema = schema_of(domain, node.op_type(), version);
  if (schema && (schema->HasFunction() || schema->HasContextDependentFunction())) {
    try {
      return schema_body(*schema, node, opsets, input_types, where);
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& error) {
      user_error("{}: {}", where, error.what());
    }
  }
  auto function = own_expansion(node, input_types, where);
  if (function == nullptr && optional) return {};
  RF_CHECK(function != nullptr, "{}: neither a body nor a kernel", where);
  Opsets own = opsets_of(*function);
  return {std::move(function), std::move(own)};
}

}  // namespace redfuser
