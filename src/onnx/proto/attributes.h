// AttributeProto -> ir::Attribute.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/graph.h"

namespace onnx {
class AttributeProto;
class NodeProto;
}  // namespace onnx

namespace redfuser::onnx {

class ExternalData;

// Null if the node has no attribute of that name.
const ::onnx::AttributeProto* find_attribute(const ::onnx::NodeProto& node,
                                             const std::string& name);

// The attributes of a function call, by name, that its body's references are bound to.
using BoundAttributes = std::map<std::string, const ::onnx::AttributeProto*>;

// `node` with its attribute references replaced by the bound values (removed where there is none).
// Returns `node` itself when it has no references, else `storage`.
const ::onnx::NodeProto& bind_attributes(const ::onnx::NodeProto& node,
                                         const BoundAttributes& bound, ::onnx::NodeProto& storage);

// Checks that every attribute is there once, with one value of the type that it names. Only the
// nodes of a function's body (`in_function`) may refer to an attribute of the call instead. Throws
// UserError that starts with `where`.
void check_attributes(const ::onnx::NodeProto& node, bool in_function, const std::string& where);

// The source of an attribute's tensors, and the beginning of its errors.
struct AttributeSource {
  std::shared_ptr<const void> owner;  // keeps the proto alive; null: tensors are copied
  ExternalData* external = nullptr;
  std::string where;
};

// True for graphs, sparse tensors, types and lists of these or of tensors.
bool is_unsupported(const ::onnx::AttributeProto& attribute);

// The attributes of a node without references. Throws UserError for kinds that a Graph cannot hold.
ir::Attributes read_attributes(const ::onnx::NodeProto& node, const AttributeSource& source);

// The value of a Constant node, whichever attribute holds it.
Tensor constant_tensor(const ::onnx::NodeProto& node, const AttributeSource& source);

}  // namespace redfuser::onnx
