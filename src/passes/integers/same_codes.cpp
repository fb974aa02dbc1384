#include "passes/integers/same_codes.h"

#include "ir/evaluate.h"
#include "ir/scalars/integers.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "passes/integers/pointwise.h"
#include "passes/integers/scaled_values.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

constexpr int kBytes = 256;
// Relative distances from the dequantised value at which its code must come back as well, so that
// the rounding of a kernel decides nothing.
constexpr double kNear[] = {1 - 0x1p-16, 1 + 0x1p-16};

// The codes that the quantised value `id` is equal to; kAbsent without any.
ir::ValueId codes_of(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.values[static_cast<size_t>(id)];
  if (!is_byte(value.dtype) || value.is_constant()) return ir::kAbsent;
  const std::vector<ir::Expr> axes = ops::shared_index(graph, id);
  ops::Lowering lowering(graph, [id](ir::ValueId v) { return v == id; });
  const ir::Expr element = lowering.element(id, axes);
  const ir::ValueId floats = read_value(element, axes);
  if (floats == ir::kAbsent) return ir::kAbsent;
  const auto scaled = scaled_value(graph, floats);
  if (!scaled) return ir::kAbsent;
  const ir::Value& codes = graph.values[static_cast<size_t>(scaled->codes)];
  if (codes.dtype != value.dtype || codes.shape != value.shape) return ir::kAbsent;
  const int64_t low = ir::lowest_word(value.dtype);
  for (int64_t code = low; code < low + kBytes; ++code) {
    const double x = static_cast<double>(code - scaled->zero) * scaled->scale;
    for (const double near : kNear) {
      const double back =
          evaluate(element, [&](ir::Expr e) { return e->op == ir::ExprOp::Read ? x * near : 0.0; });
      if (back != static_cast<double>(code)) return ir::kAbsent;
    }
  }
  return scaled->codes;
}

}  // namespace

bool same_codes(ir::Graph& graph) {
  Rewrite rewrite(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    if (node.def == nullptr || node.def->lower == nullptr || node.outputs.size() != 1) continue;
    const ir::ValueId codes = codes_of(graph, node.outputs[0]);
    if (codes == ir::kAbsent) continue;
    if (rewrite.replace(node.outputs[0], codes)) rewrite.remove(static_cast<ir::NodeId>(n));
  }
  return rewrite.apply();
}

}  // namespace redfuser::passes
