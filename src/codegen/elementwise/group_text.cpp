#include "codegen/elementwise/group_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/polynomial.h"

namespace redfuser::codegen {

ir::Expr GroupText::first_of(ir::Expr offset) {
  auto affine = affine_in(pool_, offset, inner_);
  if (!affine || !affine->stride->is_constant(1)) return nullptr;
  return affine->base;
}

void GroupText::note_aligned(const std::string& buffer) {
  if (std::find(aligned_.begin(), aligned_.end(), buffer) == aligned_.end()) {
    aligned_.push_back(buffer);
  }
}

void GroupText::require(const std::string& buffer, ir::Expr base) {
  note_aligned(buffer);
  for (ir::Expr unit : offset_units(pool_, base)) units_.push_back(unit);
}

void GroupText::load_groups() {
  std::set<ir::Expr> seen;
  for (const Store& store : stores_) {
    visit(store.body, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0 || !seen.insert(e).second) return;
      ir::Expr base = first_of(e->args[0]);
      if (!base || base->depends_on(inner_)) return;
      const std::string buffer = kernel_.buffer(e->integer), name = emitter_.fresh("g");
      require(buffer, base);
      const std::string start = emitter_.emit(base);
      emitter_.line(
          fmt::format("{0} {1}[{2}];\nload_group<{2}>({1}, {3}, {4} + first, valid, "
                      "vector);",
                      value_type(e->dtype), name, width_, buffer, start));
      loaded_.emplace_back(e, name);
    });
  }
}

// Null for other bodies, and for a condition that is loaded: the loads of both sides would wait for
// it.
ir::Expr GroupText::common_condition() const {
  ir::Expr condition = nullptr;
  for (const Store& store : stores_) {
    if (store.body->op != ir::ExprOp::Select) return nullptr;
    if (condition && store.body->args[0] != condition) return nullptr;
    condition = store.body->args[0];
  }
  bool loaded = condition == nullptr || condition->depends_on(inner_);
  if (!loaded) visit(condition, [&](ir::Expr e) { loaded |= e->op == ir::ExprOp::Read; });
  return loaded ? nullptr : condition;
}

std::string GroupText::side(size_t number) {
  std::vector<Store> stores = stores_;
  for (Store& store : stores) store.body = store.body->args[number];
  GroupText text(emitter_, stores, inner_, width_);
  text.loaded_ = loaded_;
  emitter_.open();
  text.add();
  for (const std::string& buffer : text.aligned_) note_aligned(buffer);
  units_.insert(units_.end(), text.units_.begin(), text.units_.end());
  return emitter_.close();
}

void GroupText::add() {
  if (ir::Expr condition = common_condition()) {
    const std::string chosen = emitter_.emit(condition);
    const std::string first = side(1), second = side(2);
    emitter_.line(fmt::format("if ({}) {{\n{}}} else {{\n{}}}", chosen, first, second));
    return;
  }
  load_groups();
  std::vector<std::string> results, buffers, starts;
  for (const Store& store : stores_) {
    const DType dtype = kernel_.dtype_of(store.value);
    buffers.push_back(kernel_.buffer(store.value, true));
    ir::Expr base = first_of(store.offset);
    if (base) require(buffers.back(), base);
    starts.push_back(base ? emitter_.emit(base) : "");
    results.push_back(emitter_.fresh("y"));
    emitter_.line(fmt::format("{} {}[{}];", value_type(dtype), results.back(), width_));
  }
  emitter_.open();
  emitter_.line(fmt::format("const long long at = min_of(first + v, {} - 1);",
                            kernel_.size(inner_->extent())));
  emitter_.bind(inner_, "at");
  for (auto& [read, name] : loaded_) emitter_.bind(read, name + "[v]");
  for (size_t i = 0; i < stores_.size(); ++i) {
    const Store& store = stores_[i];
    const std::string value = emitter_.emit_as(store.body, kernel_.dtype_of(store.value));
    emitter_.line(fmt::format("{}[v] = {};", results[i], value));
    if (starts[i].empty()) {
      emitter_.line(fmt::format("if (v < valid) store({}, {}, {}[v]);", buffers[i],
                                emitter_.emit(store.offset), results[i]));
    }
  }
  const std::string elements = emitter_.close();
  emitter_.line(
      fmt::format("#pragma unroll\nfor (int v = 0; v < {}; ++v) {{\n{}}}", width_, elements));
  for (size_t i = 0; i < stores_.size(); ++i) {
    if (starts[i].empty()) continue;
    emitter_.line(fmt::format("store_group<{}>({}, {} + first, {}, valid, vector);", width_,
                              buffers[i], starts[i], results[i]));
  }
}

std::string GroupText::condition() {
  units_.push_back(inner_->extent());
  return all_aligned(kernel_.multiples(units_, width_), aligned_);
}

}  // namespace redfuser::codegen
