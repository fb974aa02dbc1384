// Disjoint, convex groups of nodes, so that each can become one node of an acyclic graph.
#pragma once

#include <string>
#include <vector>

namespace redfuser::onnx {

// A graph of nodes 0..n-1 in topological order.
struct NodeGraph {
  std::vector<std::vector<int>> readers;  // nodes that read a node's outputs, sorted, unique
  std::vector<bool> cheap;                // size arithmetic: may join a region; empty: none
};

struct Grouping {
  std::vector<int> group;  // of each node; -1: none
  struct Dropped {
    int node;
    int region;
    bool shared;  // it belongs to an earlier region; otherwise it would close a cycle
  };
  std::vector<Dropped> dropped;
};

// Takes the regions in order. A region keeps the nodes that no earlier region has. Where a path
// leaves it and comes back, cheap nodes of the detour join it; for others either the nodes before
// the detour or those after it are dropped, whichever are fewer (those before, if equal). Paths
// count through earlier groups as a whole, so contracting every group leaves the graph acyclic.
Grouping group_regions(const NodeGraph& graph, const std::vector<std::vector<int>>& regions);

// The nodes in an order where every group is contiguous and follows its inputs; the lowest node
// first where there is a choice.
std::vector<int> grouped_order(const NodeGraph& graph, const std::vector<int>& group);

}  // namespace redfuser::onnx
