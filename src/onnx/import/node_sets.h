// Sets of nodes that another runtime may replace with one node each.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace onnx {
class GraphProto;
class ValueInfoProto;
}  // namespace onnx

namespace redfuser::onnx {

// The declarations of a graph's inputs, outputs and other values, by name.
using ValueTypeProtos = std::unordered_map<std::string, const ::onnx::ValueInfoProto*>;
ValueTypeProtos declared_types(const ::onnx::GraphProto& graph);

// All nodes in topological order, those that no output needs included. UserError as from
// live_order.
std::vector<int> order_of_all(const ::onnx::GraphProto& graph, const std::string& where);

// The nodes without a reason (by node), as few sets in topological order. No path leaves a set and
// comes back to it, and the sets have an order too. A node gets a reason where a value would enter
// or leave its set that is not declared a tensor of numbers or truth values of 8 bits and more, or
// would enter it without a rank.
std::vector<std::vector<int>> node_sets(const ::onnx::GraphProto& graph, const std::string& where,
                                        std::vector<std::string>& reasons);

}  // namespace redfuser::onnx
