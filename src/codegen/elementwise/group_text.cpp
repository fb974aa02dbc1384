#include "codegen/elementwise/group_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/text/function_text.h"

namespace redfuser::codegen {

ir::Expr GroupText::first_of(ir::Expr offset) const {
  return adjacent_from(emitter_.pool(), offset, axes_);
}

std::string GroupText::condition(int width) const {
  ir::ExprPool& pool = emitter_.pool();
  return accesses_.condition(product_of(pool, extents_of(pool, axes_)), width);
}

void GroupText::load(ir::Expr root, const std::function<bool(ir::Expr)>& wanted,
                     std::string* declared) {
  visit(root, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Read || e->integer < 0 || (wanted && !wanted(e))) return;
    if (is_bound(e)) return;
    ir::Expr base = first_of(e->args[0]);
    if (!base) return;
    const std::string buffer = emitter_.kernel().buffer(e->integer), name = emitter_.fresh("g");
    accesses_.add(buffer, base);
    if (declared) {
      *declared += fmt::format("Values<{}, Tile::kWidth> {};\n", value_type(e->dtype), name);
    }
    const std::string start = emitter_.emit_whole(base, DType::Int64);
    emitter_.line(fmt::format("{}{} = group.load({}, {});", declared ? "" : "const auto ", name,
                              buffer, start));
    bind(e, name + "[v]");
  });
}

void GroupText::each(const std::function<void()>& element) {
  emitter_.open();
  bind_coordinates(emitter_, axes_, "at", small_);
  for (const auto& [leaf, text] : leaves_) emitter_.bind(leaf, text);
  element();
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("group.each([&](int v, long long at) {});", braced(text)));
}

void GroupText::write(const std::vector<Store>& stores, const std::function<void()>& bind) {
  KernelText& kernel = emitter_.kernel();
  std::vector<std::string> results, starts;
  for (const Store& store : stores) {
    ir::Expr base = first_of(store.offset);
    if (base) accesses_.add(kernel.buffer(store.value, true), base);
    starts.push_back(base ? emitter_.emit_whole(base, DType::Int64) : "");
    results.push_back(emitter_.fresh("y"));
    if (!base) continue;
    emitter_.line(fmt::format("auto {} = group.values({});", results.back(),
                              kernel.buffer(store.value, true)));
  }
  each([&] {
    if (bind) bind();
    for (size_t i = 0; i < stores.size(); ++i) {
      const Store& store = stores[i];
      const std::string value = emitter_.emit_whole(store.body, kernel.dtype_of(store.value));
      emitter_.line(starts[i].empty()
                        ? fmt::format("if (v < group.valid) store({}, {}, {});",
                                      kernel.buffer(store.value, true),
                                      emitter_.emit_whole(store.offset, DType::Int64), value)
                        : fmt::format("{}[v] = {};", results[i], value));
    }
  });
  for (size_t i = 0; i < stores.size(); ++i) {
    if (starts[i].empty()) continue;
    emitter_.line(fmt::format("group.store({}, {}, {});", kernel.buffer(stores[i].value, true),
                              starts[i], results[i]));
  }
}

bool GroupText::is_bound(ir::Expr leaf) const {
  return std::any_of(leaves_.begin(), leaves_.end(),
                     [&](const auto& bound) { return bound.first == leaf; });
}

ir::Expr GroupText::common_condition(const std::vector<Store>& stores) const {
  ir::Expr condition = nullptr;
  for (const Store& store : stores) {
    if (store.body->op != ir::ExprOp::Select) return nullptr;
    if (condition && store.body->args[0] != condition) return nullptr;
    condition = store.body->args[0];
  }
  if (!condition) return nullptr;
  bool varies = std::any_of(axes_.begin(), axes_.end(),
                            [&](ir::Expr axis) { return condition->depends_on(axis); });
  visit(condition, [&](ir::Expr e) { varies |= e->op == ir::ExprOp::Read || is_bound(e); });
  return varies ? nullptr : condition;
}

void GroupText::compute(const std::vector<Store>& stores) {
  if (ir::Expr condition = common_condition(stores)) {
    const std::string chosen = emitter_.emit(condition);
    const std::string first = side(stores, 1), second = side(stores, 2);
    emitter_.line(fmt::format("if ({}) {{\n{}}} else {{\n{}}}", chosen, first, second));
    return;
  }
  for (const Store& store : stores) load(store.body);
  write(stores);
}

std::string GroupText::side(std::vector<Store> stores, size_t number) {
  for (Store& store : stores) store.body = store.body->args[number];
  const size_t known = leaves_.size();
  emitter_.open();
  compute(stores);
  leaves_.resize(known);
  return emitter_.close();
}

}  // namespace redfuser::codegen
