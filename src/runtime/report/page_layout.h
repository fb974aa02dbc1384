// A page's graph with its layouts as JSON: all nodes, and with repeated layers folded.
#pragma once

#include "runtime/report/equations.h"
#include "runtime/report/page_graph.h"

namespace redfuser::runtime {

//   {"nodes": [{"role": "node|input|output", "title": "", "name": "", "detail": "", "number": 0}],
//    "layouts": [layout of all, layout with folds], "folds": [{"first": node, "period": 9,
//    "count": 11}]}
// with layouts {"width": 0, "height": 0, "items": [[node or -1 - fold, x, y, width, height]],
// "edges": [[item, item, x, y, ...]]}; the second one is missing where nothing repeats. x, y are
// middles, and the bends of edges. A fold stands for `count` blocks of `period` nodes from the node
// `first` on, which equal the block before it.
Json graph_json(const PageGraph& graph);

}  // namespace redfuser::runtime
