// Checks of the attributes and bodies of control flow nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "redfuser/tensor.h"

namespace onnx {
class GraphProto;
class NodeProto;
class ValueInfoProto;
}  // namespace onnx

namespace redfuser::onnx {

// Checks that both branches of an If have the node's number of outputs with the same kinds and
// element types; shapes may differ. Throws UserError that starts with `where`.
void check_branches(const ::onnx::GraphProto& then_branch, const ::onnx::GraphProto& else_branch,
                    const ::onnx::NodeProto& node, const std::string& where);

// A list attribute with an entry for each of `count` inputs or outputs, zeros if it is left out.
// UserError for another number of entries.
std::vector<int64_t> integers_for_each(const ::onnx::NodeProto& node, const std::string& name,
                                       size_t count, const std::string& where);

// The same for directions: 0 is forward, 1 reverse; UserError for other numbers.
std::vector<int64_t> directions_for_each(const ::onnx::NodeProto& node, const std::string& name,
                                         size_t count, const std::string& where);

// Checks a condition or a count: one element (of `count`, if that is known), bool or int64. Throws
// UserError that starts with `where` and names the value and `what` it is.
void check_decision(DType dtype, std::optional<int64_t> count, const std::string& value,
                    const char* what, const std::string& where);

// A scan output of a body, as `declared`, that never ran; undefined where its type is open.
Tensor empty_stack(const ::onnx::ValueInfoProto& declared);

}  // namespace redfuser::onnx
