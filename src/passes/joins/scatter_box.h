// Scatters whose positions are known and lie in a box.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

// The updates overwrite data[start(d) : start(d) + size(d)] in every dimension d. In dimensions
// that are `whole` they overwrite everything, whose size may be known at run time only.
struct ScatterBox {
  struct Range {
    bool whole = false;
    int64_t start = 0, size = 0;
  };
  std::vector<Range> ranges;  // of the data's dimensions
  // The dimension of the updates that runs along each dimension of the data; kNone where they write
  // one position. Dimensions of the updates that are missing here have one element.
  static constexpr int64_t kNone = -1;
  std::vector<int64_t> axes;
};

// The box of a ScatterND or ScatterElements that replaces elements; nullopt where its positions
// depend on data or lie otherwise, or the box is empty or is all of the data. Takes time linear in
// constant positions.
std::optional<ScatterBox> find_scatter_box(const ir::Graph& graph, const ir::Node& node);

}  // namespace redfuser::passes
