#include "codegen/convolution/convolution_step.h"

namespace redfuser::codegen {
namespace {

const fuse::OpaqueStep::Epilogue* epilogue_of(const StepBuilder& builder) {
  const auto& epilogue = std::get<fuse::OpaqueStep>(builder.step.kind).epilogue;
  return epilogue ? &*epilogue : nullptr;
}

}  // namespace

ConvolutionStep::ConvolutionStep(StepBuilder& step_builder, const ops::NodeView& node)
    : builder(step_builder), view(node), operands_(operands_of(node.node())) {
  std::vector<int64_t> kernel;
  for (ir::Expr size : tail(weights_shape())) {
    if (!size->is_constant()) view.fail("the kernel's spatial sizes must be static");
    kernel.push_back(size->integer);
  }
  windows = windows_of(view, kernel);
  const auto* epilogue = epilogue_of(builder);
  value = epilogue ? epilogue->value : view.node().outputs[0];
  output = axes_of(pool(), builder.shape(value), "o");
}

ir::Expr ConvolutionStep::depth() const {
  ir::Expr depth = channels();
  for (const int64_t size : windows.kernel) depth = pool().mul(depth, pool().integer(size));
  return depth;
}

std::vector<ir::Expr> ConvolutionStep::positions() const {
  std::vector<ir::Expr> positions = {output[0]};
  positions.insert(positions.end(), output.begin() + 2, output.end());
  return positions;
}

ConvolutionStep::Operands ConvolutionStep::operands_of(const ir::Node& node) {
  if (node.op == "ConvInteger") return {1, -1, 2, 3};
  return {};
}

// The element of a parameter for all, or for filter output[1].
ir::Expr ConvolutionStep::parameter(int input) const {
  const std::vector<ir::Expr>& shape = view.shape(input);
  std::vector<ir::Expr> index(shape.size(), pool().integer(0));
  if (shape.size() == 1 && !shape[0]->is_constant(1)) index[0] = output[1];
  return pool().read(view.node().inputs[static_cast<size_t>(input)], view.dtype(input), index);
}

ir::Expr ConvolutionStep::zero_point(int input) const {
  if (input < 0 || !view.has_input(input)) return nullptr;
  return pool().cast(DType::Int32, parameter(input));
}

ir::Expr ConvolutionStep::outside() const {
  ir::Expr zero = input_zero();
  return zero != nullptr ? pool().cast(dtype(), zero) : pool().number(0, dtype());
}

ir::Expr ConvolutionStep::element(ir::Expr sum) const {
  if (operands_.bias >= 0 && view.has_input(operands_.bias)) {
    sum = pool().add(sum, pool().cast(sum->dtype, parameter(operands_.bias)));
  }
  const auto* epilogue = epilogue_of(builder);
  if (epilogue == nullptr) return sum;
  std::vector<std::pair<ir::Expr, ir::Expr>> map = {{this->sum(), sum}};
  for (size_t i = 0; i < output.size(); ++i) {
    if (epilogue->axes[i]->op == ir::ExprOp::Axis) map.emplace_back(epilogue->axes[i], output[i]);
  }
  return pool().substitute(epilogue->body, map);
}

bool channels_last(const Target& target, int64_t value) {
  const MemoryOrder* order = target.order_of(value);
  return order != nullptr && order->front() == 0 && order->back() == 1;
}

}  // namespace redfuser::codegen
