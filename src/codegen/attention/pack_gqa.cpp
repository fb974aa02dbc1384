// Rows that read the same keys and values become one axis.
//
//     axis = c · outer + inner        where keys and values have ⌊axis/c⌋ alone
//     a, b  = ⌊p / |b|⌋, p mod |b|    for axes a and b that neither keys nor values have
#include "codegen/attention/pack_gqa.h"

#include <algorithm>

#include <fmt/format.h>

namespace redfuser::codegen {
namespace {

using Map = std::vector<std::pair<ir::Expr, ir::Expr>>;

void substitute(ir::ExprPool& pool, AttentionSpec& form, const Map& map) {
  auto apply = [&](ir::Expr& e) {
    if (e) e = pool.substitute(e, map);
  };
  for (cascade::Accumulator& a : form.rows.accumulators) {
    apply(a.lift);
    apply(a.transport);
  }
  for (cascade::Reference& reference : form.rows.references) apply(reference.value);
  for (ir::Expr& e : form.rows.finish) apply(e);
  for (FlatStreaming::Output& output : form.rows.outputs) {
    apply(output.body);
    apply(output.offset);
  }
  for (ir::Expr* e :
       {&form.contraction, &form.scale, &form.query, &form.key, &form.value, &form.weight})
    apply(*e);
  for (ir::Expr& e : form.carried) apply(e);
}

// The c if keys and values have the axis as ⌊axis/c⌋ alone; null if they have it otherwise.
ir::Expr shared_divisor(ir::ExprPool& pool, const AttentionSpec& form, ir::Expr axis) {
  ir::Expr divisor = nullptr;
  bool same = true;
  for (ir::Expr root : {form.key, form.value}) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::FloorDiv || e->args[0] != axis) return;
      same &= !divisor || divisor == e->args[1];
      divisor = e->args[1];
    });
  }
  if (!divisor || !same || !divisor->is_constant() || !axis->extent()->is_constant())
    return nullptr;
  if (divisor->integer < 2 || axis->extent()->integer % divisor->integer != 0) return nullptr;
  const Map outer = {{pool.floordiv(axis, divisor), pool.integer(0)}};
  for (ir::Expr root : {form.key, form.value}) {
    if (pool.substitute(root, outer)->depends_on(axis)) return nullptr;
  }
  return divisor;
}

void split_digits(ir::ExprPool& pool, AttentionSpec& form) {
  const std::vector<ir::Expr> axes = form.rows.cascade.rows;
  for (ir::Expr axis : axes) {
    ir::Expr divisor = shared_divisor(pool, form, axis);
    if (!divisor) continue;
    ir::Expr outer = pool.shared_axis(fmt::format("outer of {}", axis->integer),
                                      pool.floordiv(axis->extent(), divisor));
    ir::Expr inner = pool.shared_axis(fmt::format("inner of {}", axis->integer), divisor);
    substitute(pool, form, {{pool.floordiv(axis, divisor), outer}});
    substitute(pool, form, {{axis, pool.add(pool.mul(outer, divisor), inner)}});
    auto at = std::find(form.rows.cascade.rows.begin(), form.rows.cascade.rows.end(), axis);
    *at = outer;
    form.rows.cascade.rows.insert(at + 1, inner);
  }
}

}  // namespace

SharedRows shared_rows(ir::ExprPool& pool, const AttentionSpec& form) {
  SharedRows result{form, {}, {}};
  split_digits(pool, result.form);
  for (ir::Expr axis : result.form.rows.cascade.rows) {
    const bool shared = !result.form.key->depends_on(axis) && !result.form.value->depends_on(axis);
    (shared ? result.shared : result.others).push_back(axis);
  }
  return result;
}

AttentionSpec packed_gqa_rows(ir::ExprPool& pool, const AttentionSpec& original) {
  SharedRows rows = shared_rows(pool, original);
  AttentionSpec& form = rows.form;
  form.others = rows.others;
  form.row = rows.shared.empty() ? nullptr : rows.shared[0];
  if (rows.shared.size() < 2) return form;
  form.row = pool.shared_axis("packed rows", product_of(pool, extents_of(pool, rows.shared)));
  Map map;
  ir::Expr stride = pool.integer(1);
  for (auto axis = rows.shared.rbegin(); axis != rows.shared.rend(); ++axis) {
    map.emplace_back(*axis, pool.floormod(pool.floordiv(form.row, stride), (*axis)->extent()));
    stride = pool.mul(stride, (*axis)->extent());
  }
  substitute(pool, form, map);
  form.rows.cascade.rows = rows.others;
  form.rows.cascade.rows.push_back(form.row);
  return form;
}

}  // namespace redfuser::codegen
