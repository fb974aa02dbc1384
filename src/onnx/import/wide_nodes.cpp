#include "onnx/import/wide_nodes.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <string>
#include <vector>

#include "onnx/functions/functions.h"

namespace redfuser::onnx {
namespace {

constexpr int kMaxInputs = 64;
constexpr int kOpset = 23;

bool is_associative(const std::string& op) {
  return op == "Sum" || op == "Mean" || op == "Max" || op == "Min" || op == "Concat";
}

::onnx::NodeProto& add_node(::onnx::FunctionProto& body, const std::string& op,
                            const std::string& output) {
  ::onnx::NodeProto& node = *body.add_node();
  node.set_op_type(op);
  node.add_output(output);
  return node;
}

// One level of the tree: the names of its results.
std::vector<std::string> combined(::onnx::FunctionProto& body, const ::onnx::NodeProto& node,
                                  const std::string& op, const std::vector<std::string>& inputs,
                                  int level) {
  std::vector<std::string> results;
  for (size_t first = 0; first < inputs.size(); first += kMaxInputs) {
    results.push_back(fmt::format("{}_{}", level, results.size()));
    ::onnx::NodeProto& part = add_node(body, op, results.back());
    if (op == "Concat") *part.mutable_attribute() = node.attribute();
    const size_t end = std::min(first + kMaxInputs, inputs.size());
    for (size_t i = first; i < end; ++i) part.add_input(inputs[i]);
  }
  return results;
}

// total / count, in the type of the total.
std::string divided(::onnx::FunctionProto& body, const std::string& total, int count) {
  ::onnx::AttributeProto& value = *add_node(body, "Constant", "count").add_attribute();
  value.set_name("value_float");
  value.set_type(::onnx::AttributeProto::FLOAT);
  value.set_f(static_cast<float>(count));
  ::onnx::NodeProto& typed = add_node(body, "CastLike", "divisor");
  typed.add_input("count");
  typed.add_input(total);
  ::onnx::NodeProto& quotient = add_node(body, "Div", "mean");
  quotient.add_input(total);
  quotient.add_input("divisor");
  return "mean";
}

}  // namespace

std::shared_ptr<const ::onnx::FunctionProto> wide_body(const ::onnx::NodeProto& node) {
  if (node.input_size() <= kMaxInputs || !normal_domain(node.domain()).empty()) return nullptr;
  if (!is_associative(node.op_type()) || node.output_size() != 1) return nullptr;
  const auto absent = [](const std::string& input) { return input.empty(); };
  if (std::any_of(node.input().begin(), node.input().end(), absent)) return nullptr;
  auto body = std::make_shared<::onnx::FunctionProto>();
  body->set_name(node.op_type());
  body->add_opset_import()->set_version(kOpset);
  std::vector<std::string> values;
  for (int i = 0; i < node.input_size(); ++i) {
    values.push_back(fmt::format("x{}", i));
    body->add_input(values.back());
  }
  const std::string op = node.op_type() == "Mean" ? "Sum" : node.op_type();
  for (int level = 0; values.size() > 1; ++level) {
    values = combined(*body, node, op, values, level);
  }
  const bool mean = node.op_type() == "Mean";
  body->add_output(mean ? divided(*body, values[0], node.input_size()) : values[0]);
  return body;
}

}  // namespace redfuser::onnx
