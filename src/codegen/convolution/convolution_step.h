// A convolution, of floats or of 8-bit integers (ConvInteger), and what follows it
// element by element, as its families take them.
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
  int64_t weights() const { return view.node().inputs[static_cast<size_t>(operands_.weights)]; }
  const std::vector<ir::Expr>& weights_shape() const { return view.shape(operands_.weights); }
  DType weights_dtype() const { return view.dtype(operands_.weights); }
  DType dtype() const { return view.dtype(0); }
  bool of_integers() const { return operands_.weights_zero >= 0; }
  int64_t groups() const { return view.integer("group", 1); }
  // Of a group.
  ir::Expr channels() const { return weights_shape()[1]; }
  // Elements that a result sums.
  ir::Expr depth() const;
  // Axes of a result's position: the image, then the spatial dimensions.
  std::vector<ir::Expr> positions() const;
  // The sum of products: of integers their 32-bit sum, else of the input's type.
  ir::Expr sum() const {
    return pool().leaf(ir::LeafKind::Product, 0, of_integers() ? DType::Int32 : dtype());
  }
  // Zero points of integers, which are subtracted from the elements of the input and of the weights
  // of filter output[1]; null for 0.
  ir::Expr input_zero() const { return zero_point(operands_.input_zero); }
  ir::Expr weights_zero() const { return zero_point(operands_.weights_zero); }
  // The input's element outside of the image, of its type.
  ir::Expr outside() const;
  // The result's element from its sum.
  ir::Expr element(ir::Expr sum) const;

 private:
  // Numbers of the node's inputs; -1: the operator has none. The input's is 0.
  struct Operands {
    int weights = 1, bias = 2, input_zero = -1, weights_zero = -1;
  };
  static Operands operands_of(const ir::Node& node);
  ir::Expr parameter(int input) const;
  ir::Expr zero_point(int input) const;

  const Operands operands_;
};

// The channel comes last in the value's memory order.
bool channels_last(const Target& target, int64_t value);

}  // namespace redfuser::codegen
