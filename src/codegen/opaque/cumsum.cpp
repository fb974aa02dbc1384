#include "base/error.h"
#include "codegen/opaque/opaque_kernels.h"

namespace redfuser::codegen {

void generate_cumsum(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const auto axis_input = view.constant_integers(1);
  if (!axis_input || axis_input->size() != 1) {
    view.fail("the axis is known at run time only, which has no kernel on a GPU");
  }
  const std::vector<ir::Expr>& shape = view.shape(0);
  const auto axis = static_cast<size_t>(view.axis((*axis_input)[0], view.rank(0)));
  ir::Expr outer = product_of(pool, {shape.begin(), shape.begin() + static_cast<long>(axis)});
  ir::Expr inner = product_of(pool, {shape.begin() + static_cast<long>(axis) + 1, shape.end()});
  KernelText kernel = builder.kernel();
  const ir::ValueId input = view.node().inputs[0], output = view.node().outputs[0];
  if (value_type(kernel.dtype_of(input)) == "bool") view.fail("a bool tensor is not numeric");
  const std::string x = kernel.buffer(input), y = kernel.buffer(output, true);
  constexpr int kWarps = 8;
  const std::string body = fmt::format(
      "const long long outer = floor_div(blockIdx.x, {0});\n"
      "const long long base = outer * {1} * {0} + (blockIdx.x - outer * {0});\n"
      "scan_line<{6}>({2}, {3}, base, {1}, {0}, {4}, {5});\n",
      kernel.size(inner), kernel.size(shape[axis]), x, y, view.integer("exclusive", 0) != 0,
      view.integer("reverse", 0) != 0, kWarps);
  KernelLaunch launch = kernel.launch("cumsum", "y[i] = x[0] + ... + x[i]\n",
                                      {"ptx", "math", "types", "scan"}, "", body, 32 * kWarps);
  launch.static_shared = 2 * kWarps * 8;  // two slots for each warp, of 8 bytes at most
  launch.grid[0] = pool.mul(outer, inner);
  builder.result.calls.push_back(std::move(launch));
}

}  // namespace redfuser::codegen
