#include "codegen/functor/flat_streaming.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/functor/stream_digits.h"
#include "ir/polynomial.h"
#include "ir/scalars/operations.h"

namespace redfuser::codegen {
namespace {

void append_axis(std::vector<ir::Expr>& axes, ir::Expr axis) {
  if (axis->op != ir::ExprOp::Axis) return;
  if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
}

bool uses_new(ir::Expr expr, int64_t reference) {
  bool found = false;
  visit(expr, [&](ir::Expr e) {
    found |= e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::NewResult &&
             e->integer == reference;
  });
  return found;
}

}  // namespace

FlatStreaming flat_streaming(StepBuilder& builder, const fuse::CascadeStep& step) {
  const cascade::Streaming& s = step.streaming;
  ir::ExprPool& pool = builder.pool();
  auto flat = [&](ir::Expr e) { return e ? builder.flat.flat(e) : nullptr; };
  FlatStreaming form{s};
  form.comment = to_string(pool, s);
  std::vector<ir::Expr>& rows = form.cascade.rows;
  rows.clear();
  for (ir::Expr row : s.cascade.rows) append_axis(rows, row);
  for (const cascade::Accumulator& a : s.accumulators) {
    for (ir::Expr column : a.columns) append_axis(rows, column);
  }
  for (cascade::Accumulator& a : form.accumulators) {
    a.lift = flat(a.lift);
    a.transport = flat(a.transport);
  }
  for (cascade::Reference& reference : form.references) reference.value = flat(reference.value);
  for (ir::Expr& e : form.finish) e = flat(e);
  form.cascade.outputs.clear();
  for (const cascade::CascadeOutput& output : s.cascade.outputs) {
    FlatStreaming::Output to{output.value,
                             flat(output.body),
                             builder.offset_of(output.value, output.axes),
                             {},
                             output.maps_back};
    for (ir::Expr axis : output.axes) {
      if (axis != s.cascade.stream && std::find(rows.begin(), rows.end(), axis) == rows.end()) {
        append_axis(to.extra, axis);
      }
    }
    if (to.maps_back && !to.extra.empty()) {
      builder.fail("an output with ranks and the reduced axis has no form on a GPU");
    }
    form.outputs.push_back(std::move(to));
  }
  return form;
}

std::vector<ir::Expr> FlatStreaming::streamed() const {
  std::vector<ir::Expr> result;
  for (const cascade::Accumulator& a : accumulators) result.push_back(a.lift);
  for (const Output& output : outputs) {
    if (output.maps_back) result.push_back(output.body);
  }
  return result;
}

std::vector<Phase> phases_of(const FlatStreaming& form) {
  std::vector<Phase> phases;
  size_t begin = 0;
  for (size_t k = 0; k < form.accumulators.size(); ++k) {
    for (size_t r = 0; r < form.references.size(); ++r) {
      if (!uses_new(form.accumulators[k].lift, static_cast<int64_t>(r))) continue;
      if (static_cast<size_t>(form.references[r].ready_after) > begin) {
        phases.push_back({begin, k});
        begin = k;
      }
    }
  }
  if (begin < form.accumulators.size()) phases.push_back({begin, form.accumulators.size()});
  return phases;
}

std::vector<ir::Expr> shared_values(const FlatStreaming& form, const std::vector<Phase>& phases) {
  std::vector<std::vector<ir::Expr>> roots;
  for (const Phase& phase : phases) {
    roots.emplace_back();
    for (size_t k = phase.begin; k < phase.end; ++k) {
      roots.back().push_back(form.accumulators[k].lift);
      // Every rank of a ranked reduction is a pass of its own.
      if (is_ranked(form.accumulators[k].reduction)) roots.push_back(roots.back());
    }
  }
  roots.emplace_back();
  for (const FlatStreaming::Output& output : form.outputs) {
    if (output.maps_back) roots.back().push_back(output.body);
  }
  std::map<ir::Expr, size_t> count;
  for (const auto& list : roots) {
    std::set<ir::Expr> seen;
    for (ir::Expr root : list) {
      visit(
          root, [&](ir::Expr e) { seen.insert(e); }, false);
    }
    for (ir::Expr e : seen) ++count[e];
  }
  std::vector<ir::Expr> shared;
  std::set<ir::Expr> visited;
  auto keeps = [&](ir::Expr e) {
    return e->depends_on(form.cascade.stream) && e->has_read && !e->has_leaf && count[e] >= 2;
  };
  auto has_ranked_read = [](ir::Expr e) {
    bool found = false;
    visit(e, [&](ir::Expr x) { found |= x->op == ir::ExprOp::Read && x->integer < 0; });
    return found;
  };
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    // A cast between types that are computed in the same type is not a separate value.
    while (e->op == ir::ExprOp::Cast && is_float(e->dtype) &&
           value_type(e->dtype) == value_type(e->args[0]->dtype)) {
      e = e->args[0];
    }
    if (!visited.insert(e).second) return;
    if (keeps(e) && !has_ranked_read(e)) {
      shared.push_back(e);
      return;
    }
    if (e->op == ir::ExprOp::Reduce || e->op == ir::ExprOp::Read) return;
    for (ir::Expr arg : e->args) go(arg);
  };
  for (const auto& list : roots) {
    visited.clear();
    for (ir::Expr root : list) go(root);
  }
  std::vector<ir::Expr> unique;
  for (ir::Expr e : shared) {
    if (std::find(unique.begin(), unique.end(), e) == unique.end()) unique.push_back(e);
  }
  return unique;
}

// Whether the innermost digit of the streamed axis is contiguous and not a multiple of the width.
static bool crosses_groups(ir::ExprPool& pool, const FlatStreaming& form, int width) {
  bool crosses = false;
  auto note = [&](ir::Expr offset) {
    ir::Expr stream = form.cascade.stream;
    if (affine_in(pool, offset, stream)) return;
    const auto group = grouped_offset(pool, offset, stream, width);
    if (!group || group->stride != 1) return;
    for (ir::Expr unit : group->units) {
      crosses |= unit->is_constant() && unit->integer % width != 0;
    }
  };
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0) note(e->args[0]);
    });
  }
  return crosses;
}

int row_width(const StepBuilder& builder, const FlatStreaming& form) {
  size_t smallest = 4;
  auto note = [&](int64_t value) {
    if (is_float(builder.dtype_of(value))) {
      smallest = std::min(smallest, size_of(builder.dtype_of(value)));
    }
  };
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      auto group = grouped_offset(builder.pool(), e->args[0], form.cascade.stream, 1);
      if (group && group->stride == 1) note(e->integer);
    });
  }
  for (const auto& output : form.outputs) {
    if (output.maps_back) note(output.value);
  }
  int width = smallest >= 4 ? 4 : 8;
  // Groups end where the next digit of the streamed axis begins; a group has at least a word.
  for (; width * static_cast<int>(smallest) > 4 && width > 1; width /= 2) {
    if (!crosses_groups(builder.pool(), form, width)) break;
  }
  return width;
}

bool folds(const FlatStreaming& form) {
  for (const cascade::Accumulator& a : form.accumulators) {
    if (is_ranked(a.reduction)) return false;
  }
  bool producer = false;
  for (ir::Expr root : form.streamed()) {
    visit(root, [&](ir::Expr e) { producer |= e->op == ir::ExprOp::Reduce; });
  }
  return !producer;
}

bool maps_back(const FlatStreaming& form) {
  return std::any_of(form.outputs.begin(), form.outputs.end(),
                     [](const FlatStreaming::Output& output) { return output.maps_back; });
}

bool counts(const FlatStreaming& form) {
  bool found = false;
  auto look = [&](ir::Expr root) {
    if (!root) return;
    visit(root, [&](ir::Expr e) {
      found |= e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Count;
    });
  };
  for (const cascade::Reference& reference : form.references) look(reference.value);
  for (const cascade::Accumulator& a : form.accumulators) {
    look(a.lift);
    look(a.transport);
  }
  return found;
}

int64_t state_bytes(const FlatStreaming& form) {
  int64_t bytes = counts(form) ? 8 : 0;
  for (const cascade::Accumulator& a : form.accumulators) bytes += is_arg(a.reduction) ? 16 : 8;
  return bytes;
}

int folded_bytes(const StepBuilder& builder, const FlatStreaming& form) {
  std::set<ir::Expr> seen;
  size_t bytes = 0;
  for (const cascade::Accumulator& a : form.accumulators) {
    visit(a.lift, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0 || !e->depends_on(form.cascade.stream))
        return;
      if (seen.insert(e).second) bytes += size_of(builder.dtype_of(e->integer));
    });
  }
  return static_cast<int>(bytes);
}

bool rounds_smoothly(const StepBuilder& builder, const FlatStreaming& form) {
  bool smooth = true;
  for (const FlatStreaming::Output& output : form.outputs) {
    const DType dtype = builder.dtype_of(output.value);
    smooth &= dtype == DType::Float16 || dtype == DType::BFloat16;
    visit(output.body, [&](ir::Expr e) { smooth &= !ir::jumps(e); });
  }
  for (const cascade::Accumulator& a : form.accumulators) {
    smooth &= !picks_element(a.reduction);
    visit(a.lift, [&](ir::Expr e) { smooth &= !ir::jumps(e); });
  }
  return smooth;
}

bool uses_state(ir::Expr e, size_t accumulator) {
  bool found = false;
  if (!e) return false;
  visit(e, [&](ir::Expr x) {
    found |= x->op == ir::ExprOp::Leaf && x->leaf_kind == ir::LeafKind::State &&
             x->integer == static_cast<int64_t>(accumulator);
  });
  return found;
}

void write_row_outputs(Emitter& emitter, KernelText& kernel, const FlatStreaming& form) {
  ir::ExprPool& pool = kernel.pool();
  for (const auto& output : form.outputs) {
    if (output.maps_back) continue;
    emitter.open();
    bind_coordinates(emitter, output.extra, "extra");
    const std::string value = emitter.emit_as(output.body, kernel.dtype_of(output.value));
    emitter.line(fmt::format("store({}, {}, {});", kernel.buffer(output.value, true),
                             emitter.emit(output.offset), value));
    const std::string text = emitter.close();
    ir::Expr count = product_of(pool, extents_of(pool, output.extra));
    emitter.line(fmt::format("each_of_lane<Lanes>(lane, {}, [&](long long extra) {{\n{}}});",
                             kernel.size(count), text));
  }
}

}  // namespace redfuser::codegen
