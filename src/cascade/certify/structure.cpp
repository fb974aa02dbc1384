#include "cascade/certify/structure.h"

#include <bit>
#include <cstring>

namespace redfuser::cascade {

void StructureKey::add(const Cascade& cascade) {
  add_expressions(cascade.rows);
  add_expression(cascade.stream);
  add_number(static_cast<int64_t>(cascade.stages.size()));
  for (const Stage& stage : cascade.stages) {
    add_number(static_cast<int64_t>(stage.reduction));
    add_number(static_cast<int64_t>(stage.dtype));
    add_number(stage.k);
    add_expression(stage.body);
    add_expressions(stage.columns);
  }
  add_outputs(cascade);
}

void StructureKey::add_outputs(const Cascade& cascade) {
  add_number(static_cast<int64_t>(cascade.outputs.size()));
  for (const CascadeOutput& output : cascade.outputs) {
    add_number(number_of(output.value));
    add_number(output.maps_back);
    add_expression(output.body);
    add_expressions(output.axes);
  }
}

void StructureKey::add(const Streaming& streaming) {
  add_outputs(streaming.cascade);
  add_number(static_cast<int64_t>(streaming.accumulators.size()));
  for (const Accumulator& a : streaming.accumulators) {
    add_number(static_cast<int64_t>(a.reduction));
    add_number(static_cast<int64_t>(a.form));
    add_number(a.stage);
    add_number(static_cast<int64_t>(a.dtype));
    add_number(a.k);
    add_expressions(a.columns);
    add_expression(a.lift);
    add_expression(a.transport);
  }
  add_number(static_cast<int64_t>(streaming.references.size()));
  for (const Reference& reference : streaming.references) {
    add_number(reference.ready_after);
    add_expression(reference.value);
  }
  add_expressions(streaming.finish);
  add_number(streaming.exact_infinities);
}

void StructureKey::add_number(int64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  text_.append(bytes, sizeof number);
}

void StructureKey::add_expressions(const std::vector<ir::Expr>& exprs) {
  add_number(static_cast<int64_t>(exprs.size()));
  for (ir::Expr expr : exprs) add_expression(expr);
}

// The number of the root follows the records of its parts, which begin with an operation: the two
// differ in sign.
void StructureKey::add_expression(ir::Expr expr) {
  const int64_t root = expr != nullptr ? visit(expr) : 0;
  add_number(-1 - root);
}

int64_t StructureKey::number_of(int64_t value) {
  return values_.try_emplace(value, static_cast<int64_t>(values_.size())).first->second;
}

// Operands are recorded before the expression, which names them by number.
uint32_t StructureKey::visit(ir::Expr expr) {
  if (const uint32_t* known = known_.find(expr)) return *known;
  for (ir::Expr arg : expr->args) visit(arg);
  add_number(static_cast<int64_t>(expr->op) << 32 | static_cast<int64_t>(expr->dtype) << 16 |
             static_cast<int64_t>(expr->reduction) << 8 | static_cast<int64_t>(expr->leaf_kind));
  const bool reads_value = expr->op == ir::ExprOp::Read && expr->integer >= 0;
  add_number(reads_value                    ? number_of(expr->integer)
             : expr->op == ir::ExprOp::Axis ? 0
                                            : expr->integer);
  add_number(std::bit_cast<int64_t>(expr->number));
  add_number(static_cast<int64_t>(expr->args.size()));
  for (ir::Expr arg : expr->args) add_number(*known_.find(arg));
  known_.insert(expr, ++count_);
  return count_;
}

}  // namespace redfuser::cascade
