#include "codegen/matrix/group_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/elementwise/elementwise_kernel.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {

GroupEpilogue::GroupEpilogue(StepBuilder& builder, KernelText& kernel, Emitter& emitter,
                             const fuse::ProductStep& step, ProductEpilogue epilogue)
    : builder_(builder),
      pool_(builder.pool()),
      kernel_(kernel),
      emitter_(emitter),
      step_(step),
      epilogue_(std::move(epilogue)),
      columns_(product_of(pool_, extents_of(pool_, step.n))),
      rows_(step.m) {
  std::erase_if(rows_, [](ir::Expr axis) { return axis->op != ir::ExprOp::Axis; });
}

void GroupEpilogue::merge_rows(ir::Expr count) {
  if (rows_.size() < 2) return;
  ir::Expr row = pool_.axis("row", count);
  auto by_row = [&](ir::Expr offset) -> ir::Expr {
    auto parts = strided(pool_, offset, rows_);
    if (!parts) return nullptr;
    for (size_t i = 0; i + 1 < rows_.size(); ++i) {
      ir::Expr next = pool_.mul(parts->strides[i + 1], rows_[i + 1]->extent());
      if (parts->strides[i] != next) return nullptr;
    }
    return pool_.add(parts->base, pool_.mul(row, parts->strides.back()));
  };
  ir::Expr offset = by_row(epilogue_.offset);
  ir::Expr body = pool_.rewrite(epilogue_.body, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Read || !depends_on_row(e)) return nullptr;
    ir::Expr at = by_row(e->args[0]);
    return at ? pool_.read(e->integer, e->dtype, {at}) : nullptr;
  });
  if (!offset || depends_on_row(body)) return;
  epilogue_.offset = offset;
  epilogue_.body = body;
  rows_ = {row};
}

void GroupEpilogue::load(int width, bool with_row, std::string* declared) {
  std::set<ir::Expr> seen;
  visit(epilogue_.body, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Read || e->integer < 0 || !seen.insert(e).second) return;
    if (depends_on_row(e) != with_row) return;
    ir::Expr base = first_of(e->args[0]);
    if (!base) return;
    const std::string buffer = kernel_.buffer(e->integer), name = emitter_.fresh("g");
    require(buffer, base);
    const std::string start = emitter_.emit(base);
    const std::string variable = fmt::format("{} {}[{}];\n", value_type(e->dtype), name, width);
    emitter_.line(fmt::format("{}load_group<{}>({}, {}, {} + first, valid, vector);",
                              declared ? "" : variable, width, name, buffer, start));
    if (declared) *declared += variable;
    loaded_.emplace_back(e, name);
  });
}

void GroupEpilogue::write(int width, const SumText& sum) {
  const std::string target = kernel_.buffer(epilogue_.value, true);
  ir::Expr base = first_of(epilogue_.offset);
  if (base) require(target, base);
  const std::string start = base ? emitter_.emit(base) : "";
  compute(width, sum, "y", [&] {
    if (base) return;
    emitter_.line(fmt::format("if (v < valid) store({}, {}, y[v]);", target,
                              emitter_.emit(epilogue_.offset)));
  });
  if (base) {
    emitter_.line(
        fmt::format("store_group<{}>({}, {} + first, y, valid, vector);", width, target, start));
  }
}

void GroupEpilogue::compute(int width, const SumText& sum, const std::string& name,
                            const std::function<void()>& each) {
  const DType out = builder_.dtype_of(epilogue_.value);
  emitter_.line(fmt::format("{} {}[{}];", value_type(out), name, width));
  emitter_.open();
  emitter_.line(
      fmt::format("const long long at = min_of(first + v, {} - 1);", kernel_.size(columns_)));
  bind_coordinates(emitter_, step_.n, "at");
  for (size_t i = 0; i < epilogue_.products.size(); ++i) {
    emitter_.bind(epilogue_.products[i], sum(i));
  }
  for (const auto& [read, loaded] : loaded_) emitter_.bind(read, loaded + "[v]");
  emitter_.line(fmt::format("{}[v] = {};", name, emitter_.emit_as(epilogue_.body, out)));
  if (each) each();
  const std::string elements = emitter_.close();
  emitter_.line(
      fmt::format("#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\n{}}}", width, elements));
}

std::string GroupEpilogue::all_aligned_text(int width) {
  std::vector<ir::Expr> units = units_;
  units.push_back(columns_);
  return all_aligned(kernel_.multiples(units, width), aligned_);
}

bool GroupEpilogue::depends_on_row(ir::Expr e) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](ir::Expr axis) { return e->depends_on(axis); });
}

ir::Expr GroupEpilogue::first_of(ir::Expr offset) {
  if (step_.n.size() != 1 || step_.n[0]->op != ir::ExprOp::Axis) return nullptr;
  auto affine = affine_in(pool_, offset, step_.n[0]);
  const bool consecutive =
      affine && affine->stride->is_constant(1) && !affine->base->depends_on(step_.n[0]);
  return consecutive ? affine->base : nullptr;
}

void GroupEpilogue::require(const std::string& buffer, ir::Expr base) {
  if (std::find(aligned_.begin(), aligned_.end(), buffer) == aligned_.end()) {
    aligned_.push_back(buffer);
  }
  for (ir::Expr unit : offset_units(pool_, base)) units_.push_back(unit);
}

}  // namespace redfuser::codegen
