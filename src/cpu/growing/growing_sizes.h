// Sizes of runs that differ in one length, such as the positions of a cache: a step is planned once
// for all of them, in memory for the greatest.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fuse/plan.h"
#include "ir/graph.h"

namespace redfuser::cpu {

struct GrowingSizes {
  // Of a value whose memory has earlier positions already: a run writes positions [begin, end) of
  // `axis`, where the end is the value's size.
  struct Append {
    ir::ValueId past;  // has the positions before `begin` in the same memory
    size_t axis;
    ir::Expr begin;  // over the graph's symbols
  };

  size_t length = 0;          // the number of the symbol that is the length
  int64_t least = 0;          // the length of a run is this or more
  std::vector<int64_t> most;  // by symbol, in the run of the greatest length
  // By symbol: the size less the length, of sizes that grow with it.
  std::vector<std::optional<int64_t>> offsets;
  std::map<ir::ValueId, Dims> rooms;  // memory of other sizes than the greatest
  std::map<ir::ValueId, Append> appends;

  // Whether the size, or a size of the value, grows; also of a value that has room. The memory of
  // a list does not: it holds other values.
  bool grows(ir::Expr size) const;
  bool grows(const ir::Graph& graph, ir::ValueId value) const;
  // Whether a reduction in the expression is over an axis that grows.
  bool folds_growing(ir::Expr expr) const;
  // The greatest that the size is in a run of any length.
  int64_t greatest(ir::Expr size) const;
  // The sizes of the value's memory.
  Dims memory_of(const ir::Graph& graph, ir::ValueId value) const;
  // The length in a run with these symbols.
  int64_t length_of(std::span<const int64_t> symbols) const { return symbols[length]; }
  // What the step appends; null if it writes a whole value.
  const Append* append_of(const fuse::MapStep& step) const;
};

// The greatest value of a size for symbols `most` and all in which those of `growing` are less by
// the same number, as long as none is negative.
int64_t greatest_size(ir::Expr size, std::vector<int64_t> most, std::span<const size_t> growing);

}  // namespace redfuser::cpu
