// A convolution and what follows it element by element, as its families take them.
#pragma once

#include <vector>

#include "codegen/convolution/windows.h"
#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

class ConvolutionStep {
 public:
  // Of the builder's step. Both must outlive this. UserError for a kernel of unknown size.
  ConvolutionStep(StepBuilder& builder, const ops::NodeView& view);

  StepBuilder& builder;
  const ops::NodeView& view;
  Windows windows;
  int64_t value;                 // that the step writes
  std::vector<ir::Expr> output;  // axes of its dimensions: image, filter, then spatial ones

  ir::ExprPool& pool() const { return builder.pool(); }
  int64_t input() const { return view.node().inputs[0]; }
  int64_t weights() const { return view.node().inputs[1]; }
  DType dtype() const { return view.dtype(0); }
  int64_t groups() const { return view.integer("group", 1); }
  // Of a group.
  ir::Expr channels() const { return view.shape(1)[1]; }
  // Elements that a result sums.
  ir::Expr depth() const;
  // Axes of a result's position: the image, then the spatial dimensions.
  std::vector<ir::Expr> positions() const;
  // The sum of products, of the input's type.
  ir::Expr sum() const { return pool().leaf(ir::LeafKind::Product, 0, dtype()); }
  // The result's element from its sum.
  ir::Expr element(ir::Expr sum) const;
};

// The channel comes last in the value's memory order.
bool channels_last(const Target& target, int64_t value);

}  // namespace redfuser::codegen
