#include "cascade/certify/elements.h"

#include <functional>

namespace redfuser::cascade {
namespace {

using Change = std::function<ir::Expr(ir::Expr)>;

void change_cascade(Cascade& cascade, const Change& change) {
  for (Stage& stage : cascade.stages) stage.body = change(stage.body);
  for (CascadeOutput& output : cascade.outputs) output.body = change(output.body);
}

void change_streaming(Streaming& streaming, const Change& change) {
  for (Accumulator& a : streaming.accumulators) {
    a.lift = change(a.lift);
    if (a.transport != nullptr) a.transport = change(a.transport);
  }
  for (Reference& reference : streaming.references) reference.value = change(reference.value);
  for (ir::Expr& finish : streaming.finish) finish = change(finish);
  for (CascadeOutput& output : streaming.cascade.outputs) output.body = change(output.body);
}

// A ranked result, which is read by a negative number.
bool is_result(ir::Expr expr) { return expr->op == ir::ExprOp::Read && expr->integer < 0; }

bool is_element(ir::Expr expr) {
  if (!expr->has_read || expr->has_leaf || expr->op == ir::ExprOp::Axis) return false;
  bool pure = true;
  visit(expr, [&](ir::Expr e) { pure &= !is_result(e); });
  return pure;
}

}  // namespace

ir::Expr ElementReads::of(ir::Expr expr) {
  auto [entry, inserted] = reads_.try_emplace(expr, nullptr);
  if (!inserted) return entry->second;
  std::vector<ir::Expr> indices;
  visit(expr, [&](ir::Expr node) {
    if (node->op == ir::ExprOp::Axis && expr->depends_on(node)) indices.push_back(node);
  });
  const int64_t number = kFirst + static_cast<int64_t>(reads_.size());
  entry->second = pool_.read(number, expr->dtype, indices);
  return entry->second;
}

ir::Expr ElementReads::known(ir::Expr expr) const {
  const auto found = reads_.find(expr);
  return found == reads_.end() ? nullptr : found->second;
}

Sides with_contractions_read(ir::ExprPool& pool, const Sides& sides, ElementReads& reads) {
  Sides result = sides;
  const Change change = [&](ir::Expr root) {
    return pool.rewrite(
        root, [&](ir::Expr e) { return e->op == ir::ExprOp::Reduce ? reads.of(e) : nullptr; });
  };
  change_cascade(result.cascade, change);
  change_streaming(result.streaming, change);
  return result;
}

bool read_elements(Sides& sides, ir::ExprPool& pool, ElementReads& reads) {
  change_cascade(sides.cascade, [&](ir::Expr root) {
    return pool.rewrite(root, [&](ir::Expr e) { return is_element(e) ? reads.of(e) : nullptr; });
  });
  bool complete = true;
  change_streaming(sides.streaming, [&](ir::Expr root) {
    return pool.rewrite(root, [&](ir::Expr e) -> ir::Expr {
      if (ir::Expr element = reads.known(e)) return element;
      if (e->op == ir::ExprOp::Read && !is_result(e)) complete = false;
      return nullptr;
    });
  });
  return complete;
}

}  // namespace redfuser::cascade
