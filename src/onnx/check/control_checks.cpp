#include "onnx/check/control_checks.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "base/type_codes.h"
#include "onnx/proto/attributes.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

std::string type_text(const ::onnx::TypeProto& type) {
  if (type.has_tensor_type()) return type_name(type.tensor_type().elem_type());
  if (type.has_sequence_type()) return "a sequence";
  return type.has_optional_type() ? "an optional" : "neither tensor nor sequence";
}

}  // namespace

void check_branches(const ::onnx::GraphProto& then_branch, const ::onnx::GraphProto& else_branch,
                    const ::onnx::NodeProto& node, const std::string& where) {
  for (const ::onnx::GraphProto* branch : {&then_branch, &else_branch}) {
    if (branch->input_size() != 0) {
      user_error("{}: its branch \"{}\" has {} inputs; a branch has none", where, branch->name(),
                 branch->input_size());
    }
    if (branch->output_size() != node.output_size()) {
      user_error("{}: its branch \"{}\" has {} outputs where the node has {}", where,
                 branch->name(), branch->output_size(), node.output_size());
    }
  }
  for (int i = 0; i < node.output_size(); ++i) {
    const ::onnx::TypeProto& a = then_branch.output(i).type();
    const ::onnx::TypeProto& b = else_branch.output(i).type();
    const bool open = a.value_case() == ::onnx::TypeProto::VALUE_NOT_SET ||
                      b.value_case() == ::onnx::TypeProto::VALUE_NOT_SET;
    const int left = a.tensor_type().elem_type(), right = b.tensor_type().elem_type();
    const bool same = a.value_case() == b.value_case() && (left == right || !left || !right);
    if (open || same) continue;
    user_error("{}: its branches give output {} different types: {} and {}", where, i, type_text(a),
               type_text(b));
  }
}

std::vector<int64_t> integers_for_each(const ::onnx::NodeProto& node, const std::string& name,
                                       size_t count, const std::string& where) {
  std::vector<int64_t> list;
  if (const ::onnx::AttributeProto* attribute = find_attribute(node, name)) {
    list.assign(attribute->ints().begin(), attribute->ints().end());
  }
  if (!list.empty() && list.size() != count) {
    user_error("{}: {} has {} entries, not {}", where, name, list.size(), count);
  }
  list.resize(count);
  return list;
}

std::vector<int64_t> directions_for_each(const ::onnx::NodeProto& node, const std::string& name,
                                         size_t count, const std::string& where) {
  const std::vector<int64_t> list = integers_for_each(node, name, count, where);
  for (const int64_t direction : list) {
    if (direction != 0 && direction != 1) {
      user_error("{}: {}: {} is neither 0 (forward) nor 1 (reverse)", where, name, direction);
    }
  }
  return list;
}

void check_decision(DType dtype, std::optional<int64_t> count, const std::string& value,
                    const char* what, const std::string& where) {
  if (count && *count != 1) {
    user_error("{}: {} must have one element; \"{}\" has {}", where, what, value, *count);
  }
  if (dtype != DType::Bool && dtype != DType::Int64) {
    user_error("{}: {} must be bool or int64; \"{}\" is {}", where, what, value, name_of(dtype));
  }
}

Tensor empty_stack(const ::onnx::ValueInfoProto& declared) {
  const auto& type = declared.type().tensor_type();
  Dims dims{0};
  for (const auto& dim : type.shape().dim()) dims.push_back(std::max<int64_t>(dim.dim_value(), 0));
  const DType dtype = dtype_of(type.elem_type());
  return size_of(dtype) == 0 ? Tensor() : Tensor(dtype, dims);
}

}  // namespace redfuser::onnx
