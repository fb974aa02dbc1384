#include "codegen/convolution/convolution_step.h"

namespace redfuser::codegen {
namespace {

const fuse::OpaqueStep::Epilogue* epilogue_of(const StepBuilder& builder) {
  const auto& epilogue = std::get<fuse::OpaqueStep>(builder.step.kind).epilogue;
  return epilogue ? &*epilogue : nullptr;
}

}  // namespace

ConvolutionStep::ConvolutionStep(StepBuilder& step_builder, const ops::NodeView& node)
    : builder(step_builder), view(node) {
  std::vector<int64_t> kernel;
  for (ir::Expr size : tail(view.shape(1))) {
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

ir::Expr ConvolutionStep::element(ir::Expr sum) const {
  if (view.has_input(2)) {
    ir::Expr bias = pool().read(view.node().inputs[2], view.dtype(2), {output[1]});
    sum = pool().add(sum, pool().cast(dtype(), bias));
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
  return order != nullptr && order->back() == 1;
}

}  // namespace redfuser::codegen
