// Output elements of nodes as expressions.
#pragma once

#include <cstdint>
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

// Lowered elements with the elements that their lowerings read, kept for further Lowerings of one
// graph. Two lowerings that read equal expressions give equal ones. The graph must not change
// meanwhile.
class LoweringMemo {
 private:
  friend class Lowering;
  struct Element;
  using Elements = std::unordered_map<ElementAt, Element, ElementHash>;  // addresses stay
  struct Read {
    std::pair<const ElementAt, Element>* element;
    ir::Expr result;
  };
  struct Known {
    std::vector<Read> reads;  // in order, of what may be lowered
    ir::Expr result;
  };
  struct Element {
    std::vector<Known> known;
    ir::Expr read = nullptr;    // the Read of it; null while none asked
    uint64_t lowering = 0;      // the last one that asked for it
    ir::Expr result = nullptr;  // of the element
  };
  Elements elements_;
  uint64_t lowerings_ = 0;
};

// Lowers output elements through the graph. `inlined(value)` tells whether a produced value is
// replaced by its own lowering or stays a Read; the answer for a value must not change. Constants
// of one element, known elements and indexed values are always replaced.
class Lowering {
 public:
  using Inline = std::function<bool(ir::ValueId)>;
  // `memo` may be null; it serves Lowerings with other values inlined, too.
  Lowering(const ir::Graph& graph, Inline inlined, LoweringMemo* memo = nullptr);
  Lowering(const Lowering&) = delete;
  Lowering& operator=(const Lowering&) = delete;
  ir::Expr element(ir::ValueId value, std::vector<ir::Expr> index);

 private:
  // The same; notes the element in `reads`, if that is not null, where it may be lowered.
  ir::Expr element(ir::ValueId value, std::vector<ir::Expr> index,
                   std::vector<LoweringMemo::Read>* reads);
  ir::Expr result_of(LoweringMemo::Elements::value_type& element);
  ir::Expr expand(LoweringMemo::Elements::value_type& element);
  LoweringMemo::Known lowered(const ElementAt& at);
  const ir::Graph& graph_;
  Inline inlined_;
  LoweringMemo own_;
  LoweringMemo* memo_;
  uint64_t number_;  // within the memo
};

// Fresh axes, one per dimension of `value`.
std::vector<ir::Expr> output_axes(const ir::Graph& graph, ir::ValueId value);
// The same axes at every call, also for other values of the same sizes.
std::vector<ir::Expr> shared_axes(const ir::Graph& graph, ir::ValueId value);
// The same for fusion, with separate axes, and the integer 0 for every dimension of one element.
std::vector<ir::Expr> shared_index(const ir::Graph& graph, ir::ValueId value);

}  // namespace redfuser::ops
