// A cascade and its streaming form as equations for a page.
#pragma once

#include <nlohmann/json.hpp>

#include "cascade/streaming.h"
#include "ir/graph.h"

namespace redfuser::runtime {

using Json = nlohmann::ordered_json;

// Texts of ir::to_string: parts that stages share have names of their own ("where"), values are
// %number ("values" has their names). `graph` takes new expressions.
//   {"stream": "j<s", "rows": ["i0<n"], "values": {"%4": "x float32[n,s]"},
//    "where": [{"name": "s[j]", "text": ""}],
//    "stages": [{"columns": [], "reduce": "max", "text": ""}],
//    "references": [{"text": "A0", "after": 1}],
//    "accumulators": [{"columns": [], "form": "plain", "reduce": "max", "lift": "", "moved": ""}],
//    "finish": ["A0"], "outputs": [{"value": "y float32[n]", "axes": ["i0<n"], "text": "d0"}]}
Json equations(const ir::Graph& graph, const cascade::Streaming& streaming);

}  // namespace redfuser::runtime
