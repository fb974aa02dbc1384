#include "onnx/proto/attributes.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

using ::onnx::AttributeProto;

// The types of the present values: one in a valid file, none for an empty list or an omitted zero.
std::vector<AttributeProto::AttributeType> held_types(const AttributeProto& attribute) {
  std::vector<AttributeProto::AttributeType> held;
  const auto add = [&](bool present, AttributeProto::AttributeType type) {
    if (present) held.push_back(type);
  };
  add(attribute.has_f(), AttributeProto::FLOAT);
  add(attribute.has_i(), AttributeProto::INT);
  add(attribute.has_s(), AttributeProto::STRING);
  add(attribute.has_t(), AttributeProto::TENSOR);
  add(attribute.has_g(), AttributeProto::GRAPH);
  add(attribute.has_sparse_tensor(), AttributeProto::SPARSE_TENSOR);
  add(attribute.has_tp(), AttributeProto::TYPE_PROTO);
  add(attribute.floats_size() != 0, AttributeProto::FLOATS);
  add(attribute.ints_size() != 0, AttributeProto::INTS);
  add(attribute.strings_size() != 0, AttributeProto::STRINGS);
  add(attribute.tensors_size() != 0, AttributeProto::TENSORS);
  add(attribute.graphs_size() != 0, AttributeProto::GRAPHS);
  add(attribute.sparse_tensors_size() != 0, AttributeProto::SPARSE_TENSORS);
  add(attribute.type_protos_size() != 0, AttributeProto::TYPE_PROTOS);
  return held;
}

// Files of the first IR versions omit the type.
AttributeProto::AttributeType type_of(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  const auto held = held_types(attribute);
  return held.empty() ? AttributeProto::UNDEFINED : held.front();
}

const std::string& type_name(AttributeProto::AttributeType type) {
  return ::onnx::AttributeProto_AttributeType_Name(type);
}

template <typename T, typename Field>
Tensor tensor_of(DType dtype, const Field& field) {
  Tensor tensor(dtype, {static_cast<int64_t>(field.size())});
  std::copy(field.begin(), field.end(), tensor.as<T>());
  return tensor;
}

ir::Attribute read_attribute(const AttributeProto& attribute, const AttributeSource& source) {
  switch (type_of(attribute)) {
    case AttributeProto::INT:
      return static_cast<int64_t>(attribute.i());
    case AttributeProto::FLOAT:
      return attribute.f();
    case AttributeProto::STRING:
      return attribute.s();
    case AttributeProto::TENSOR:
      return to_tensor(attribute.t(), source.owner, source.external, source.where);
    case AttributeProto::INTS:
      return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
    case AttributeProto::FLOATS:
      return std::vector<float>(attribute.floats().begin(), attribute.floats().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
    default:
      user_error("{}: attribute \"{}\" is of a kind that is not supported", source.where,
                 attribute.name());
  }
}

}  // namespace

const AttributeProto* find_attribute(const ::onnx::NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

const ::onnx::NodeProto& bind_attributes(const ::onnx::NodeProto& node,
                                         const BoundAttributes& bound, ::onnx::NodeProto& storage) {
  const auto is_reference = [](const AttributeProto& a) { return !a.ref_attr_name().empty(); };
  if (std::none_of(node.attribute().begin(), node.attribute().end(), is_reference)) return node;
  storage = node;
  storage.clear_attribute();
  for (const auto& attribute : node.attribute()) {
    if (!is_reference(attribute)) {
      *storage.add_attribute() = attribute;
      continue;
    }
    const auto value = bound.find(attribute.ref_attr_name());
    if (value == bound.end()) continue;
    AttributeProto* copy = storage.add_attribute();
    *copy = *value->second;
    copy->set_name(attribute.name());
  }
  return storage;
}

void check_attributes(const ::onnx::NodeProto& node, bool in_function, const std::string& where) {
  std::set<std::string> names;
  for (const AttributeProto& attribute : node.attribute()) {
    const std::string& name = attribute.name();
    if (!names.insert(name).second) {
      user_error("{}: attribute \"{}\" appears twice", where, name);
    }
    const auto held = held_types(attribute);
    if (!attribute.ref_attr_name().empty()) {
      if (!in_function) {
        user_error("{}: attribute \"{}\" refers to \"{}\", but the node is in no function", where,
                   name, attribute.ref_attr_name());
      }
      if (!held.empty()) {
        user_error("{}: attribute \"{}\" has both a value and a reference to \"{}\"", where, name,
                   attribute.ref_attr_name());
      }
    }
    if (held.size() > 1) {
      user_error("{}: attribute \"{}\" has values of types {} and {}", where, name,
                 type_name(held[0]), type_name(held[1]));
    }
    if (!held.empty() && type_of(attribute) != held[0]) {
      user_error("{}: attribute \"{}\" is declared {} but has a value of type {}", where, name,
                 type_name(type_of(attribute)), type_name(held[0]));
    }
  }
}

bool is_unsupported(const AttributeProto& attribute) {
  if (!attribute.ref_attr_name().empty()) return false;
  switch (type_of(attribute)) {
    case AttributeProto::INT:
    case AttributeProto::FLOAT:
    case AttributeProto::STRING:
    case AttributeProto::TENSOR:
    case AttributeProto::INTS:
    case AttributeProto::FLOATS:
    case AttributeProto::STRINGS:
    case AttributeProto::TYPE_PROTO:
    case AttributeProto::UNDEFINED:
      return false;
    default:
      return true;
  }
}

ir::Attributes read_attributes(const ::onnx::NodeProto& node, const AttributeSource& source) {
  ir::Attributes attributes;
  for (const auto& attribute : node.attribute()) {
    // An untyped attribute without a value is an empty list, which every operator treats as absent.
    // Otherwise the type follows from the values.
    const AttributeProto::AttributeType type = type_of(attribute);
    if (type == AttributeProto::UNDEFINED || type == AttributeProto::TYPE_PROTO) continue;
    if (!attributes.emplace(attribute.name(), read_attribute(attribute, source)).second) {
      user_error("{}: attribute \"{}\" appears twice", source.where, attribute.name());
    }
  }
  return attributes;
}

Tensor constant_tensor(const ::onnx::NodeProto& node, const AttributeSource& source) {
  if (node.attribute_size() != 1) {
    user_error("{}: a Constant has one attribute, this one has {}", source.where,
               node.attribute_size());
  }
  const AttributeProto& value = node.attribute(0);
  if (value.name() == "value" && value.has_t()) {
    return to_tensor(value.t(), source.owner, source.external, source.where);
  }
  if (value.name() == "value_float") {
    return tensor_of<float>(DType::Float32, std::vector<float>{value.f()}).reshaped({});
  }
  if (value.name() == "value_int") {
    return tensor_of<int64_t>(DType::Int64, std::vector<int64_t>{value.i()}).reshaped({});
  }
  if (value.name() == "value_floats") return tensor_of<float>(DType::Float32, value.floats());
  if (value.name() == "value_ints") return tensor_of<int64_t>(DType::Int64, value.ints());
  if (value.name() == "value_string") return Tensor::strings({}, {value.s()});
  if (value.name() == "value_strings") {
    return Tensor::strings({value.strings_size()},
                           {value.strings().begin(), value.strings().end()});
  }
  user_error("{}: a Constant by attribute \"{}\" is not supported", source.where, value.name());
}

}  // namespace redfuser::onnx
