#include "codegen/scan/scan_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cascade/visibility/running.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

// Merges neighbours among the lines before the axis, and among those behind it.
void merge_lines(ir::ExprPool& pool, ir::Expr axis, std::vector<ir::Expr>& axes,
                 std::vector<Store>& stores) {
  for (size_t i = axes.size(); i-- > 1;) {
    if (axes[i] != axis && axes[i - 1] != axis) merge_pair(pool, axes, stores, i - 1);
  }
}

// Bytes per element that are adjacent to those of the next position on an axis.
size_t adjacent_bytes(const StepBuilder& builder, const ScanForm& form, ir::Expr axis) {
  size_t bytes = 0;
  std::set<std::pair<int64_t, ir::Expr>> seen;
  const auto note = [&](int64_t value, ir::Expr offset) {
    if (!offset->depends_on(form.axis) || !seen.insert({value, offset}).second) return;
    const auto affine = affine_in(builder.pool(), offset, axis);
    if (affine && affine->stride->is_constant(1)) bytes += size_of(builder.dtype_of(value));
  };
  for (ir::Expr root : {form.element, form.body}) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0) note(e->integer, e->args[0]);
    });
  }
  note(form.value, form.offset);
  return bytes;
}

}  // namespace

std::optional<ScanForm> scan_form(StepBuilder& builder, const fuse::ReduceStep& step) {
  ir::ExprPool& pool = builder.pool();
  const auto found = cascade::running_body(pool, step.body);
  if (!found || std::count(step.axes.begin(), step.axes.end(), found->axis) == 0) {
    return std::nullopt;
  }
  ScanForm form;
  form.value = step.value;
  form.axis = found->axis;
  form.reduction = found->reduce->reduction;
  form.reverse = found->reverse;
  form.exclusive = found->exclusive;
  form.running = pool.leaf(ir::LeafKind::State, 0, found->reduce->dtype);
  form.comment = fmt::format("running {}\n%{} = {}\n", name_of(form.reduction), step.value,
                             to_string(pool, step.body));
  ir::Expr body = pool.substitute(step.body, {{found->reduce, form.running}});
  ir::Expr offset = builder.offset_of(step.value, step.axes);
  std::vector<ir::Expr> axes = step.axes;
  std::erase_if(axes, [](ir::Expr axis) { return axis->op != ir::ExprOp::Axis; });
  std::vector<Store> stores = {{step.value, builder.flat.flat(body), offset},
                               {step.value, builder.flat.flat(found->element), offset}};
  merge_lines(pool, form.axis, axes, stores);
  form.body = stores[0].body;
  form.element = stores[1].body;
  form.offset = stores[0].offset;
  size_t best = adjacent_bytes(builder, form, form.axis);
  for (ir::Expr axis : axes) {
    if (axis == form.axis || axis->extent()->is_constant(1)) continue;
    const size_t bytes = adjacent_bytes(builder, form, axis);
    if (bytes <= best) continue;
    best = bytes;
    form.across = axis;
  }
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(form.lines),
               [&](ir::Expr axis) { return axis != form.axis && axis != form.across; });
  return form;
}

}  // namespace redfuser::codegen
