// Sets of nodes that another runtime may replace with one node each.
#pragma once

#include <string>
#include <vector>

namespace onnx {
class GraphProto;
}

namespace redfuser::onnx {

// The nodes without a reason (by node), as few sets in topological order. No path leaves a set and
// comes back to it, and the sets have an order too. A node gets a reason where a value would enter
// or leave its set that is not declared a tensor of numbers or truth values of 8 bits and more, or
// would enter it without a rank.
std::vector<std::vector<int>> node_sets(const ::onnx::GraphProto& graph, const std::string& where,
                                        std::vector<std::string>& reasons);

}  // namespace redfuser::onnx
