#include "codegen/matrix/coded_operand.h"

namespace redfuser::codegen {

std::optional<CodedOperand> coded_operand(const ir::Graph& graph, const fuse::ProductStep& step,
                                          ir::Expr operand) {
  if (operand->op != ir::ExprOp::Read || !step.batch.empty()) return std::nullopt;
  const auto& codes = graph.values[static_cast<size_t>(operand->integer)].codes;
  if (!codes) return std::nullopt;
  ir::ExprPool& pool = *graph.pool;
  // The product may end within the last block.
  const bool whole = operand->args[codes->depth_axis] == step.k &&
                     step.k->extent()->is_constant() && step.k->extent()->integer <= codes->depth;
  ir::Expr line = pool.integer(0);
  for (ir::Expr axis : step.n) line = pool.add(pool.mul(line, axis->extent()), axis);
  ir::Expr first = pool.sub(operand->args[1 - codes->depth_axis], line);
  if (!whole || !first->is_constant()) return std::nullopt;
  return CodedOperand{codes, first->integer};
}

}  // namespace redfuser::codegen
