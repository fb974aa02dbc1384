#include "cpu/steps/product_operands.h"

#include "cpu/tile/interval.h"

namespace redfuser::cpu {

bool separate_read(ir::ExprPool& pool, ir::Expr read, const TileBuilder::DimsOf& dims,
                   const std::vector<std::vector<ir::Expr>>& lists, SeparatedOffset& to) {
  if (read->op != ir::ExprOp::Read) return false;
  const Dims sizes = dims(read->integer);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Interval range = interval_of(read->args[i]);
    if (range.low < 0 || range.high >= sizes[i]) return false;
  }
  auto separated = separate(pool, flat_offset(pool, read->args, sizes), lists);
  if (separated) to = std::move(*separated);
  return separated.has_value();
}

std::optional<IntegerProduct> separate_integers(const ir::Graph& graph, ir::ExprPool& pool,
                                                Specializer& specializer,
                                                const fuse::ProductStep& step,
                                                const OperandAxes& axes,
                                                const TileBuilder::DimsOf& dims) {
  const auto operand = [&](ir::Expr read, ir::Expr zero, const std::vector<ir::Expr>& rows,
                           IntegerOperand& to) {
    read = specializer.copy(read);
    to.value = static_cast<ir::ValueId>(read->integer);
    to.dtype = read->dtype;
    to.constant = graph.values[static_cast<size_t>(to.value)].is_constant();
    if (!separate_read(pool, read, dims, {axes.batch, rows, axes.k}, to.at)) return false;
    if (zero == nullptr) return true;
    zero = specializer.copy(zero);
    if (zero->is_constant()) {
      to.zero.constant = static_cast<int32_t>(zero->integer);
      return true;
    }
    if (zero->op == ir::ExprOp::Cast) zero = zero->args[0];
    to.zero.value = static_cast<ir::ValueId>(zero->integer);
    return separate_read(pool, zero, dims, {axes.batch, rows}, to.zero.at);
  };
  IntegerProduct product;
  if (!operand(step.a, step.a_zero, axes.m, product.a)) return std::nullopt;
  for (size_t i = 0; i < step.b.size(); ++i) {
    if (!operand(step.b[i], step.b_zeros[i], axes.n, product.b.emplace_back())) return std::nullopt;
  }
  product.packed.resize(product.b.size());
  return product;
}

}  // namespace redfuser::cpu
