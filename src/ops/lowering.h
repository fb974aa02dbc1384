// Output elements of nodes as expressions.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace redfuser::ops {

// One element of a value.
struct ElementAt {
  ir::ValueId value;
  std::vector<ir::Expr> index;
  bool operator==(const ElementAt&) const = default;
};
struct ElementHash {
  size_t operator()(const ElementAt& element) const;
};

// Lowered elements with the values that their lowerings read, kept for further Lowerings of one
// graph. Two lowerings that read equal expressions give equal ones. The graph must not change
// meanwhile.
class LoweringMemo {
 private:
  friend class Lowering;
  struct Read {
    ElementAt element;
    ir::Expr result;
  };
  struct Known {
    std::vector<Read> reads;  // in order
    ir::Expr result;
  };
  std::unordered_map<ElementAt, std::vector<Known>, ElementHash> known_;
};

// Lowers output elements through the graph. `inlined(value)` tells whether a produced value is
// replaced by its own lowering or stays a Read. Constants of one element, known elements and
// indexed values are always replaced.
class Lowering {
 public:
  using Inline = std::function<bool(ir::ValueId)>;
  // `memo` may be null; it serves Lowerings with other values inlined, too.
  Lowering(const ir::Graph& graph, Inline inlined, LoweringMemo* memo = nullptr);
  ir::Expr element(ir::ValueId value, std::vector<ir::Expr> index);

 private:
  ir::Expr expand(const ElementAt& at);
  // The result of an earlier lowering that read what this one would; null if there is none.
  ir::Expr repeated(const ElementAt& at);
  LoweringMemo::Known lowered(const ElementAt& at);
  const ir::Graph& graph_;
  Inline inlined_;
  LoweringMemo* memo_;
  std::unordered_map<ElementAt, ir::Expr, ElementHash> expanded_;
};

// Fresh axes, one per dimension of `value`.
std::vector<ir::Expr> output_axes(const ir::Graph& graph, ir::ValueId value);
// The same axes at every call, also for other values of the same sizes.
std::vector<ir::Expr> shared_axes(const ir::Graph& graph, ir::ValueId value);
// The same for fusion, with separate axes, and the integer 0 for every dimension of one element.
std::vector<ir::Expr> shared_index(const ir::Graph& graph, ir::ValueId value);

}  // namespace redfuser::ops
