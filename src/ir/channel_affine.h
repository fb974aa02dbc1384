// Expressions that are affine in one variable, with constants for each channel.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace redfuser::ir {

// scale · variable + shift, for each channel.
struct ChannelAffine {
  std::vector<double> scale, shift;
  bool constant = true;  // every scale is 0
};

// Recognises sums, differences, products and quotients of floats. Constants of the graph are of one
// element, or of one for each of the `channels`, which `channel` numbers: an axis, or 0 for one
// channel. nullopt otherwise.
class ChannelAffineForms {
 public:
  ChannelAffineForms(const Graph& graph, Expr channel, int64_t channels,
                     std::function<bool(Expr)> is_variable)
      : graph_(graph),
        channel_(channel),
        channels_(channels),
        is_variable_(std::move(is_variable)) {}

  std::optional<ChannelAffine> of(Expr e) const;
  // A function of constants, int32 ones too, at each channel.
  std::optional<ChannelAffine> constant_of(Expr e) const;

 private:
  std::vector<double> all(double number) const;
  std::optional<ChannelAffine> combined(ExprOp op, const ChannelAffine& a,
                                        const ChannelAffine& b) const;
  bool is_number(Expr read) const;

  const Graph& graph_;
  Expr channel_;
  int64_t channels_;
  std::function<bool(Expr)> is_variable_;
};

}  // namespace redfuser::ir
