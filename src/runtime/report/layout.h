// Places the nodes of a directed graph in layers, top down: the method of Sugiyama, Tagawa and Toda
// (IEEE Transactions on Systems, Man, and Cybernetics 11, 1981) with longest-path layers,
// barycentre sweeps for the order within a layer, and places by isotonic regression.
#pragma once

#include <vector>

namespace redfuser::runtime {

struct Point {
  double x = 0, y = 0;
};

struct LayoutNode {
  double width = 0, height = 0;  // given
  Point centre;
};

// From a node's bottom to a later one's top, through `bends`.
struct LayoutEdge {
  int from = 0, to = 0;  // nodes; from < to
  std::vector<Point> bends;
};

struct Layout {
  std::vector<LayoutNode> nodes;  // in a topological order
  std::vector<LayoutEdge> edges;
  double width = 0, height = 0;
};

// Sets places and bends. Takes time in proportion to nodes and edges, up to logarithms: an edge
// over more than kRoutedLayers layers is a straight line.
inline constexpr int kRoutedLayers = 24;
void lay_out(Layout& layout);

}  // namespace redfuser::runtime
