#include "onnx/functions/schema_body.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "onnx/functions/expansions.h"
#include "onnx/functions/functions.h"
#include "onnx/functions/scalar_constants.h"

namespace redfuser::onnx {
namespace {

const ::onnx::OpSchema* schema_of(const std::string& domain, const std::string& op, int version) {
  return ::onnx::OpSchemaRegistry::Instance()->GetSchema(op, version, domain);
}

int version_in(const Opsets& opsets, const std::string& domain) {
  const auto found = opsets.find(domain);
  return found == opsets.end() ? 0 : found->second;
}

// A schema may have bodies for several opsets. Takes the newest one that is not newer than the
// file's opset, or the oldest if all are newer. Operators of the body keep the body's opset, so
// either is right.
int best_version(std::vector<int> versions, int wanted) {
  std::sort(versions.begin(), versions.end());
  const auto above = std::upper_bound(versions.begin(), versions.end(), wanted);
  return above == versions.begin() ? versions.front() : *(above - 1);
}

// The file's opset if every operator of the body is the same there, so that an expanded graph has
// one opset.
int common_version(const ::onnx::FunctionProto& body, int written_for, int wanted) {
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

bool has_open_size(const ::onnx::TypeProto& type) {
  const auto& dims = type.tensor_type().shape().dim();
  return std::any_of(dims.begin(), dims.end(),
                     [](const auto& dim) { return !dim.has_dim_value(); });
}

// Whether a node of the body sums or counts, for which 16 bits do not suffice.
bool sums_or_counts(const ::onnx::FunctionProto& body) {
  return std::any_of(body.node().begin(), body.node().end(), [](const auto& node) {
    return node.op_type().starts_with("Reduce") || node.op_type() == "Range";
  });
}

// Whether a node chooses the type that the operator computes in.
bool chooses_type(const ::onnx::OpSchema& schema) {
  return schema.attributes().count("stash_type") + schema.attributes().count("softmax_precision");
}

DType float_type(const ::onnx::TypeProto& type) {
  const auto dtype = static_cast<DType>(type.tensor_type().elem_type());
  return is_float(dtype) ? dtype : DType::Undefined;
}

// Every output has the type of the inputs that share its type parameter; floats of 16 bits enter a
// `widened` body as fp32.
BodyTypes body_types(const ::onnx::OpSchema& schema, const std::vector<::onnx::TypeProto>& types,
                     bool widened) {
  BodyTypes result;
  result.promotes = true;
  std::map<std::string, DType> given;  // by type parameter
  for (size_t i = 0; i < types.size(); ++i) {
    const DType dtype = float_type(types[i]);
    const auto& formal = schema.inputs()[std::min(i, schema.inputs().size() - 1)];
    if (dtype != DType::Undefined) given.emplace(formal.GetTypeStr(), dtype);
    const bool narrow = dtype == DType::Float16 || dtype == DType::BFloat16;
    result.inputs.push_back(widened && narrow ? DType::Float32 : DType::Undefined);
  }
  for (const auto& formal : schema.outputs()) {
    const auto found = given.find(formal.GetTypeStr());
    result.results.push_back(found == given.end() ? DType::Undefined : found->second);
  }
  return result;
}

// Attributes that a node omits have the schema's defaults in the body too.
void add_defaults(::onnx::FunctionProto& function, const ::onnx::OpSchema& schema) {
  for (const auto& [name, attribute] : schema.attributes()) {
    if (attribute.default_value.has_name())
      *function.add_attribute_proto() = attribute.default_value;
  }
}

// ONNX's body for inputs of these types, and its version.
std::pair<::onnx::FunctionProto, int> written_body(const ::onnx::OpSchema& schema,
                                                   const ::onnx::NodeProto& node, int wanted,
                                                   const std::vector<::onnx::TypeProto>& types,
                                                   const std::string& where) {
  if (schema.HasFunction()) {
    const int version = best_version(schema.function_opset_versions(), wanted);
    return {*schema.GetFunction(version, false), version};
  }
  const int version = best_version(schema.context_dependent_function_opset_versions(), wanted);
  const ::onnx::FunctionBodyBuildContextImpl context(node, types);
  ::onnx::FunctionProto function;
  if (!schema.BuildContextDependentFunction(context, function, version)) {
    if (std::any_of(types.begin(), types.end(), has_open_size)) {
      needs_values("{}: its function body depends on sizes that only a run knows", where);
    }
    user_error("{}: ONNX has no function body for these attributes and input types", where);
  }
  return {std::move(function), version};
}

FunctionBody schema_body(const ::onnx::OpSchema& schema, const ::onnx::NodeProto& node,
                         const Opsets& file_opsets, std::vector<::onnx::TypeProto> types,
                         const std::string& where) {
  const int wanted = version_in(file_opsets, schema.domain());
  auto [body, version] = written_body(schema, node, wanted, types, where);
  BodyTypes ends = body_types(schema, types, sums_or_counts(body) && !chooses_type(schema));
  bool widened = false;
  for (size_t i = 0; i < types.size(); ++i) {
    if (ends.inputs[i] == DType::Undefined) continue;
    types[i].mutable_tensor_type()->set_elem_type(static_cast<int>(ends.inputs[i]));
    widened = true;
  }
  if (widened) body = written_body(schema, node, wanted, types, where).first;
  auto function = std::make_shared<::onnx::FunctionProto>(std::move(body));
  add_defaults(*function, schema);
  make_scalars(*function);
  Opsets opsets = opsets_of(*function);
  if (schema.domain().empty()) {
    opsets[""] = common_version(*function, version, wanted);
  } else {
    opsets.emplace("", version_in(file_opsets, ""));
  }
  return {std::move(function), std::move(opsets), std::move(ends)};
}

}  // namespace

bool has_body(const ::onnx::NodeProto& node, const Opsets& opsets) {
  const std::string domain = normal_domain(node.domain());
  const int version = version_in(opsets, domain);
  const ::onnx::OpSchema* schema = schema_of(domain, node.op_type(), version);
  return (schema && (schema->HasFunction() || schema->HasContextDependentFunction())) ||
         has_own_expansion(node);
}

bool has_fixed_body(const ::onnx::NodeProto& node, const Opsets& opsets) {
  const std::string domain = normal_domain(node.domain());
  const ::onnx::OpSchema* schema = schema_of(domain, node.op_type(), version_in(opsets, domain));
  return schema && schema->HasFunction() && !replaces_standard_body(node);
}

FunctionBody body_of(const ::onnx::NodeProto& node, const Opsets& opsets,
                     const std::vector<::onnx::TypeProto>& input_types, const std::string& where,
                     bool optional) {
  const std::string domain = normal_domain(node.domain());
  const int version = version_in(opsets, domain);
  const ::onnx::OpSchema* schema = schema_of(domain, node.op_type(), version);
  const bool standard = schema && (schema->HasFunction() || schema->HasContextDependentFunction());
  if (standard && !replaces_standard_body(node)) {
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

}  // namespace redfuser::onnx
