#include "codegen/elementwise/group_text.h"

#include <algorithm>
#include <set>

#include "ir/polynomial.h"

namespace redfuser::codegen {

ir::Expr GroupText::first_of(ir::Expr offset) {
  auto affine = affine_in(pool_, offset, inner_);
  if (!affine || !affine->stride->is_constant(1)) return nullptr;
  return affine->base;
}

void GroupText::require(const std::string& buffer, ir::Expr base) {
  if (std::find(aligned_.begin(), aligned_.end(), buffer) == aligned_.end()) {
    aligned_.push_back(buffer);
  }
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

void GroupText::add() {
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
