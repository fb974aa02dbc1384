#include "codegen/functor/state_text.h"

#include <fmt/format.h>

#include "codegen/functor/invariant_parts.h"
#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

#include <utility>

namespace redfuser::codegen {
namespace {

bool uses(const FlatStreaming& form, ir::LeafKind kind, size_t reference) {
  for (const cascade::Accumulator& a : form.accumulators) {
    for (ir::Expr root : {a.lift, a.transport}) {
      if (!root) continue;
      bool found = false;
      visit(root, [&](ir::Expr e) {
        found |= e->op == ir::ExprOp::Leaf && e->leaf_kind == kind &&
                 e->integer == static_cast<int64_t>(reference);
      });
      if (found) return true;
    }
  }
  return false;
}

bool is_used(const FlatStreaming& form, size_t reference) {
  return uses(form, ir::LeafKind::OldResult, reference) ||
         uses(form, ir::LeafKind::NewResult, reference);
}

}  // namespace

std::vector<size_t> used_references(const FlatStreaming& form) {
  std::vector<size_t> result;
  for (size_t r = 0; r < form.references.size(); ++r) {
    if (is_used(form, r)) result.push_back(r);
  }
  return result;
}

StateText::StateText(Emitter& emitter, const FlatStreaming& form, ReferenceNames names,
                     std::optional<size_t> columns)
    : emitter_(emitter),
      form_(form),
      counts_(counts(form)),
      leaves_(emitter),
      names_(std::move(names)),
      columns_(columns) {
  leaves_.add(form);
}

std::string StateText::type_of(const cascade::Accumulator& a) const {
  if (is_arg(a.reduction)) return fmt::format("Ranked<{}>", value_type(a.lift->dtype));
  return std::string(value_type(a.dtype));
}
std::string StateText::identity_of_accumulator(const cascade::Accumulator& a) const {
  if (is_arg(a.reduction)) return fmt::format("{}{{0, -1}}", type_of(a));
  return identity_of(a.reduction, a.dtype);
}

std::string StateText::declaration() const {
  std::string members;
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    members += fmt::format("alignas(8) {} a{};\n", type_of(form_.accumulators[k]), k);
  }
  if (counts_) members += "alignas(8) int count;\n";
  return struct_text("State", members);
}

std::string StateText::members_with_references() const {
  Members members;
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    if (!is_columns(k)) members.add(type_of(form_.accumulators[k]), fmt::format("a{}", k));
  }
  for (size_t r : used_references(form_)) {
    members.add(value_type(form_.references[r].value->dtype), fmt::format("r{}", r));
  }
  if (counts_) members.add("int", "count");
  return members.text();
}

void StateText::identity(bool references) {
  emitter_.line("State s;");
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    if (is_columns(k)) continue;
    emitter_.line(fmt::format("s.a{} = {};", k, identity_of_accumulator(form_.accumulators[k])));
  }
  if (counts_) emitter_.line("s.count = 0;");
  for (size_t done = 0; references && done <= form_.accumulators.size(); ++done) {
    update_references(done, "s");
  }
  emitter_.line("return s;");
}

// Transports read the old state, not values that were already rescaled.
void StateText::merged_lanes() {
  emitter_.line("const State u = s;\nState t;");
  if (counts_) emitter_.line("t.count = mask_reduce<SumOp, High, Low>(s.count);");
  declare_old_references("s");
  declare_new_references();
  update_references(0, "t");
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    if (a.transport) emitter_.line(fmt::format("s.a{} = {};", k, moved_state(k, "u")));
    emitter_.line(
        fmt::format("t.a{0} = mask_reduce<{1}, High, Low>(s.a{0});", k, combiner_of(a.reduction)));
    update_references(k + 1, "t");
  }
  emitter_.line("return t;");
}

void StateText::merged_pair() {
  const std::string both[] = {"a", "b"};
  emitter_.line("State t;");
  if (counts_) emitter_.line("t.count = a.count + b.count;");
  declare_new_references();
  const ReferenceNames names = names_;
  for (const std::string& state : both) {
    names_.before = names.before + state;
    declare_old_references(state);
  }
  update_references(0, "t");
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    std::string moved[2];
    for (size_t i = 0; i < 2; ++i) {
      names_.before = names.before + both[i];
      moved[i] = moved_state(k, both[i]);
    }
    emitter_.line(
        fmt::format("t.a{} = {}::apply({}, {});", k, combiner_of(a.reduction), moved[0], moved[1]));
    update_references(k + 1, "t");
  }
  names_ = names;
  emitter_.line("return t;");
}

bool StateText::moves(size_t reference) const {
  return uses(form_, ir::LeafKind::OldResult, reference);
}

void StateText::bind_state(const std::string& state) {
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    const auto number = static_cast<int64_t>(k);
    if (is_columns(k)) continue;
    if (is_arg(a.reduction)) {
      bind(ir::LeafKind::State, number, fmt::format("max_of({}.a{}.index, 0ll)", state, k),
           DType::Int64);
    } else {
      bind(ir::LeafKind::State, number, fmt::format("{}.a{}", state, k), a.dtype);
    }
  }
  if (!counts_) return;
  bind(ir::LeafKind::Count, 0, fmt::format("static_cast<long long>({}.count)", state),
       DType::Int64);
}

void StateText::bind_results(const std::string& length) {
  bind(ir::LeafKind::Count, 0, length, DType::Int64);
  for (size_t i = 0; i < form_.finish.size(); ++i) {
    if (!is_ranked(form_.cascade.stages[i].reduction)) bind_result(i, length);
  }
}

std::string StateText::bind_result(size_t i, const std::string& length) {
  const cascade::Stage& stage = form_.cascade.stages[i];
  std::string value = emitter_.emit(form_.finish[i]);
  const DType dtype = form_.finish[i]->dtype;
  if (!form_.length()->is_constant() && !is_arg(stage.reduction)) {
    emitter_.line(fmt::format("const {} d{} = {} == 0 ? {} : {};", value_type(dtype), i, length,
                              identity_of(stage.reduction, dtype), value));
    value = fmt::format("d{}", i);
  }
  bind(ir::LeafKind::Result, static_cast<int64_t>(i), value, dtype);
  return value;
}

void StateText::bind_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    const DType type = form_.references[r].value->dtype;
    const auto number = static_cast<int64_t>(r);
    bind(ir::LeafKind::OldResult, number, fmt::format("{}{}", names_.before, r), type);
    bind(ir::LeafKind::NewResult, number, fmt::format("{}{}", names_.after, r), type);
  }
}

// The text of an expression over a state, in a scope of its own, so the emitter does not reuse the
// value for another state.
std::string StateText::value_of(ir::Expr expr, DType dtype, const std::string& state,
                                bool with_references) {
  emitter_.open();
  bind_state(state);
  if (with_references) bind_references();
  std::string value = emitter_.emit_whole(expr, dtype);
  emitter_.line(emitter_.close());
  return value;
}

void StateText::assign(const std::string& target, ir::Expr expr, DType dtype,
                       const std::string& state, bool with_references) {
  emitter_.line(fmt::format("{} = {};", target, value_of(expr, dtype, state, with_references)));
}

void StateText::declare_old_references(const std::string& state) {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    if (!moves(r)) continue;
    const auto type = value_type(form_.references[r].value->dtype);
    emitter_.line(fmt::format("{} {}{};", type, names_.before, r));
  }
  set_old_references(state);
}
void StateText::declare_new_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    emitter_.line(
        fmt::format("{} {}{};", value_type(form_.references[r].value->dtype), names_.after, r));
  }
}
void StateText::set_old_references(const std::string& state) {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    if (!moves(r)) continue;
    const ir::Expr value = form_.references[r].value;
    assign(fmt::format("{}{}", names_.before, r), value, value->dtype, state, false);
  }
}
void StateText::update_references(size_t done, const std::string& state) {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    const cascade::Reference& reference = form_.references[r];
    if (static_cast<size_t>(reference.ready_after) != done) continue;
    if (!is_used(form_, r)) continue;
    assign(fmt::format("{}{}", names_.after, r), reference.value, reference.value->dtype, state,
           false);
  }
}

void StateText::renew_references() {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    if (moves(r)) emitter_.line(fmt::format("{0}{2} = {1}{2};", names_.before, names_.after, r));
  }
}

void StateText::bind_new_references(size_t done) {
  for (size_t r = 0; r < form_.references.size(); ++r) {
    const cascade::Reference& reference = form_.references[r];
    if (static_cast<size_t>(reference.ready_after) > done) continue;
    bind(ir::LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("{}{}", names_.after, r),
         reference.value->dtype);
  }
}

std::string StateText::reference_members() const {
  std::string text;
  for (size_t r = 0; r < form_.references.size(); ++r) {
    text += fmt::format("{0} old{1}, new{1};\n", value_type(form_.references[r].value->dtype), r);
  }
  return text;
}

std::string StateText::moved_state(size_t k, const std::string& state) {
  const cascade::Accumulator& a = form_.accumulators[k];
  if (!a.transport) return fmt::format("{}.a{}", state, k);
  return value_of(a.transport, a.dtype, state, true);
}

void StateText::combine(size_t k, const std::string& part, const std::string& before,
                        const std::string& after) {
  emitter_.line(fmt::format("{}.a{} = {}::apply({}, {});", after, k,
                            combiner_of(form_.accumulators[k].reduction), moved_state(k, before),
                            part));
}

void StateText::move_columns(const std::string& array, const std::string& before) {
  const cascade::Accumulator& a = form_.accumulators[*columns_];
  if (!a.transport) return;
  emitter_.open();
  bind_state(before);
  bind_references();
  emitter_.open();
  bind(ir::LeafKind::State, static_cast<int64_t>(*columns_), "value", a.dtype);
  emitter_.line(fmt::format("value = {};", emitter_.emit_whole(a.transport, a.dtype)));
  const std::string element = emitter_.close();
  emitter_.line(fmt::format("each_value({}, [&](float& value) {});", array, braced(element)));
  emitter_.line(emitter_.close());
}

void StateText::settle(size_t k, const std::string& part, const std::string& before,
                       const std::string& after, bool empty) {
  if (empty) {
    emitter_.line(fmt::format("{}.a{} = {};", after, k, part));
  } else {
    combine(k, part, before, after);
  }
  update_references(k + 1, after);
}

}  // namespace redfuser::codegen
