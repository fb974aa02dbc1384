#include "onnx/functions/scalar_constants.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace redfuser::onnx {
namespace {

// Operators whose result has the broadcast shape of their operands.
constexpr std::string_view kElementwise[] = {
    "Abs",      "Add",   "And", "Cast",        "CastLike",   "Clip",     "Div",
    "Elu",      "Equal", "Erf", "Exp",         "Greater",    "Identity", "GreaterOrEqual",
    "Less",     "Log",   "Max", "LessOrEqual", "Min",        "Mod",      "Mul",
    "Neg",      "Not",   "Or",  "Pow",         "Reciprocal", "Relu",     "Sigmoid",
    "Softplus", "Sqrt",  "Sub", "Sum",         "Tanh",       "Where"};

bool is_elementwise(const ::onnx::NodeProto& node) {
  return node.domain().empty() && std::find(std::begin(kElementwise), std::end(kElementwise),
                                            node.op_type()) != std::end(kElementwise);
}

// The names whose rank affects other operators.
std::set<std::string> names_of_fixed_rank(const ::onnx::FunctionProto& function) {
  std::set<std::string> fixed;
  for (int i = function.node_size(); i-- > 0;) {
    const ::onnx::NodeProto& node = function.node(i);
    const bool free =
        is_elementwise(node) && std::none_of(node.output().begin(), node.output().end(),
                                             [&](const auto& name) { return fixed.count(name); });
    if (!free) fixed.insert(node.input().begin(), node.input().end());
  }
  return fixed;
}

bool has_subgraph(const ::onnx::FunctionProto& function) {
  return std::any_of(function.node().begin(), function.node().end(), [](const auto& node) {
    return std::any_of(node.attribute().begin(), node.attribute().end(),
                       [](const auto& attribute) { return attribute.has_g(); });
  });
}

void make_scalar(::onnx::AttributeProto& attribute) {
  if (attribute.has_t() && attribute.t().dims_size() == 1 && attribute.t().dims(0) == 1) {
    attribute.mutable_t()->clear_dims();
  } else if (attribute.floats_size() == 1) {
    attribute.set_name("value_float");
    attribute.set_type(::onnx::AttributeProto::FLOAT);
    attribute.set_f(attribute.floats(0));
    attribute.clear_floats();
  } else if (attribute.ints_size() == 1) {
    attribute.set_name("value_int");
    attribute.set_type(::onnx::AttributeProto::INT);
    attribute.set_i(attribute.ints(0));
    attribute.clear_ints();
  }
}

}  // namespace

void make_scalars(::onnx::FunctionProto& function) {
  if (has_subgraph(function)) return;
  std::set<std::string> fixed = names_of_fixed_rank(function);
  fixed.insert(function.output().begin(), function.output().end());
  for (::onnx::NodeProto& node : *function.mutable_node()) {
    if (node.op_type() != "Constant" || node.attribute_size() != 1) continue;
    if (!fixed.count(node.output(0))) make_scalar(*node.mutable_attribute(0));
  }
}

}  // namespace redfuser::onnx
