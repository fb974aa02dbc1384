// Types of graph inputs, outputs and values: ONNX's form and ours.
#pragma once

#include <string>
#include <unordered_map>

#include "ir/graph.h"
#include "redfuser/redfuser.h"

namespace onnx {
class GraphProto;
class TypeProto;
class ValueInfoProto;
}  // namespace onnx

namespace redfuser::onnx {

// Sets dtype and shape of a graph input. A dimension without a size becomes a symbol: its own name,
// or `input.dimK` where that is empty, "?", "-1" or "None", which say of no two dimensions that
// they are equal. Throws UserError, starting with `where`, for inputs that are not tensors, whose
// rank is open, or whose element type is not supported.
void set_input_type(ir::Graph& graph, ir::ValueId id, const ::onnx::ValueInfoProto& info,
                    const std::string& where);
// ai.onnx.ml.ZipMap's result, which is the tensor behind it here.
bool is_list_of_maps(const ::onnx::TypeProto& type);
// Throws UserError where the type of an input or output ("graph input \"x\"") names an element
// type that RedFuser does not have, in lists as well.
void check_element_types(const ::onnx::TypeProto& type, const std::string& where);
// Throws UserError unless a run's input is of the declared type.
void check_given(const Tensor& given, const ::onnx::ValueInfoProto& info);
// The declaration of a graph input or output; symbolic dimensions are named as by set_input_type.
ValueInfo declared_info(const ::onnx::ValueInfoProto& info);
// Throws UserError unless an initializer is of the type that the graph input of its name declares.
void check_default(const Tensor& initializer, const ::onnx::ValueInfoProto& info,
                   const std::string& where);
// Throws UserError when the graph computes another element type than the value is declared with.
// `role` is "output" or "value".
void check_declared_type(const ir::Value& value, const ::onnx::ValueInfoProto& info,
                         const char* role, const std::string& where);
// The declared form of the elements of a sequence or optional.
ListFormRef declared_form(const ::onnx::TypeProto& type);
// The declarations of a graph's inputs, outputs and other values, by name.
using ValueDeclarations = std::unordered_map<std::string, const ::onnx::ValueInfoProto*>;
ValueDeclarations declarations_of(const ::onnx::GraphProto& graph);
// Throws UserError, naming the node, when a value's fixed dimensions multiply beyond int64.
void check_size(const ir::Graph& graph, ir::ValueId id);

// The ONNX type of a value, without dimensions that are more than a number or a symbol; not set
// for kAbsent. Throws NeedsValues for a list of elements of open type.
::onnx::TypeProto type_of(const ir::Graph& graph, ir::ValueId id);
ValueInfo value_info(const ir::Graph& graph, ir::ValueId id);

}  // namespace redfuser::onnx
