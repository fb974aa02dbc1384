#include "codegen/attention/attention_functor.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/elementwise/group_text.h"
#include "codegen/text/function_text.h"
#include "ir/polynomial.h"
#include "ir/scalars/operations.h"

namespace redfuser::codegen {
namespace {

const StateText::ReferenceNames kOfParts = {"part.r", "to.r"}, kOfIdentity = {"s.r", "s.r"};

bool is_costly(ir::Expr e) {
  bool result = false;
  visit(e, [&](ir::Expr x) {
    const bool divides = x->op == ir::ExprOp::FloorDiv || x->op == ir::ExprOp::FloorMod;
    const bool simple = x->op == ir::ExprOp::Axis || x->op == ir::ExprOp::Symbol || x->args.empty();
    result |= x->op == ir::ExprOp::Read || x->op == ir::ExprOp::Reduce || divides ||
              (!simple && ir::scalar_op(x->op).costly);
  });
  return result;
}

}  // namespace

int state_head(const AttentionSpec& form) {
  const size_t scalars = form.rows.accumulators.size() - 1 + used_references(form.rows).size() +
                         (counts(form.rows) ? 1 : 0);
  return static_cast<int>((scalars + 3) / 4 * 4);
}
int state_block(const AttentionSpec& form, int rows) {
  const int columns = padded_size(form.column->extent()->integer);
  return rows * (state_head(form) + columns);
}

AttentionFunctor::AttentionFunctor(KernelText& kernel, const AttentionSpec& form, bool fast,
                                   const std::vector<ir::Expr>& inner)
    : pool_(kernel.pool()),
      kernel_(kernel),
      form_(form),
      rows_(form.rows),
      fast_(fast),
      counts_(counts(form.rows)) {
  find_row_parts(inner);
  std::vector<ir::Expr> written;
  for (size_t i = 0; i < rows_.finish.size(); ++i) {
    if (of_row(i)) {
      row_results_.push_back(i);
    } else {
      written.push_back(rows_.finish[i]);
    }
  }
  for (const FlatStreaming::Output& output : rows_.outputs) written.push_back(output.body);
  tail_parts_ =
      invariant_parts(written, {form.column}, PartsWith::ReadsAndCoordinates, Quotients::Plain);
}

// Sums and products of coordinates are cheaper than members.
void AttentionFunctor::find_row_parts(const std::vector<ir::Expr>& inner) {
  std::vector<ir::Expr> roots;
  for (const cascade::Reference& reference : rows_.references) roots.push_back(reference.value);
  for (const cascade::Accumulator& a : rows_.accumulators) {
    if (a.transport) roots.push_back(a.transport);
  }
  // Its score is an element's; the contraction itself is computed elsewhere.
  ir::Expr score = pool_.leaf(ir::LeafKind::Product, 0, form_.contraction->dtype);
  for (ir::Expr e : inner) roots.push_back(pool_.substitute(e, {{form_.contraction, score}}));
  const std::vector<ir::Expr> axes = {rows_.cascade.stream, form_.depth, form_.column};
  for (const InvariantPart& part :
       invariant_parts(roots, axes, PartsWith::ReadsAndCoordinates, Quotients::Plain)) {
    if (!is_costly(part.expr)) continue;
    const bool of_line = form_.row && part.expr->depends_on(form_.row);
    (of_line ? line_parts_ : block_parts_).push_back(part);
  }
}

Emitter AttentionFunctor::emitter() const {
  Emitter result(kernel_);
  result.set_fast_math(fast_);
  return result;
}

// Whether no column is in a result; those before it are known.
bool AttentionFunctor::of_row(size_t result) const {
  ir::Expr finish = rows_.finish[result];
  bool found = !finish->depends_on(form_.column) && !uses_state(finish, form_.value_accumulator);
  visit(finish, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::Result) return;
    found &= std::find(row_results_.begin(), row_results_.end(), static_cast<size_t>(e->integer)) !=
             row_results_.end();
  });
  return found;
}

// Whether an output or a result of a column uses a result of the row.
bool AttentionFunctor::is_written(size_t result) const {
  std::vector<ir::Expr> roots;
  for (size_t i = 0; i < rows_.finish.size(); ++i) {
    if (!of_row(i)) roots.push_back(rows_.finish[i]);
  }
  for (const FlatStreaming::Output& output : rows_.outputs) roots.push_back(output.body);
  bool found = false;
  for (ir::Expr root : roots) {
    visit(root, [&](ir::Expr e) {
      found |= e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Result &&
               static_cast<size_t>(e->integer) == result;
    });
  }
  return found;
}

void AttentionFunctor::bind_block(Emitter& emitter) const {
  for (size_t i = 0; i < form_.others.size(); ++i) {
    if (form_.others[i]->op != ir::ExprOp::Axis) continue;
    emitter.bind(form_.others[i], fmt::format("row.c{}", i));
  }
  bind_parts(emitter, block_parts_, "row", "b");
}
void AttentionFunctor::bind_row(Emitter& emitter) const {
  bind_block(emitter);
  if (form_.row) emitter.bind(form_.row, "row.line");
  bind_parts(emitter, line_parts_, "row", "f");
}

std::string AttentionFunctor::line_function() {
  Emitter e = emitter();
  e.line("row.line = line;");
  bind_block(e);
  if (form_.row) e.bind(form_.row, "line");
  set_parts(e, line_parts_, "row", "f");
  return function_text("void set_line(Row& row, long long line) const", e.close());
}

std::string AttentionFunctor::row_function() {
  Emitter e = emitter();
  bind_coordinates(e, form_.others, "other");
  std::string coordinates;
  for (ir::Expr axis : form_.others) {
    if (axis->op == ir::ExprOp::Axis) coordinates += ", " + e.emit(axis);
  }
  if (block_parts_.empty() && line_parts_.empty()) {
    e.line(fmt::format("return {{line{}}};", coordinates));
  } else {
    e.line(fmt::format("Row row = {{line{}}};", coordinates));
    set_parts(e, block_parts_, "row", "b");
    e.line("set_line(row, line);\nreturn row;");
  }
  return function_text("Row row_of(long long other, long long line) const", e.close());
}

// Adds a scalar to a merged state: accumulator `done` - 1, or the count if it is 0. Settles the
// references that need no accumulator from `next` on.
std::string AttentionFunctor::scalar_function(size_t number, size_t done, size_t next) {
  Emitter add = emitter(), settle = emitter();
  for (const cascade::Reference& r : rows_.references) settle.nest({r.value});
  if (done > 0) add.nest({rows_.accumulators[done - 1].transport});
  bind_row(add);
  bind_row(settle);
  StateText parts(add, rows_, kOfParts, form_.value_accumulator);
  StateText merged(settle, rows_, kOfParts, form_.value_accumulator);
  if (done == 0) {
    add.line("to.count += part.count;");
  } else {
    parts.combine(done - 1, fmt::format("to.a{}", done - 1), "part", "to");
  }
  for (size_t ready = done; ready <= next; ++ready) merged.update_references(ready, "to");
  return function_text(
             fmt::format("void add(Scalar<{}>, State& to, const State& part, const Row& row) const",
                         number),
             add.close()) +
         function_text(
             fmt::format("void settle(Scalar<{}>, State& to, const Row& row) const", number),
             settle.close());
}

std::string AttentionFunctor::identity_function() {
  Emitter e = emitter();
  bind_row(e);
  StateText(e, rows_, kOfIdentity, form_.value_accumulator).identity(true);
  return function_text("State identity(const Row& row) const", e.close());
}

std::string AttentionFunctor::scalar_functions() {
  std::vector<size_t> steps;
  if (counts_) steps.push_back(0);
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!form_.is_value(k)) steps.push_back(k + 1);
  }
  std::string text = fmt::format("static constexpr int kScalars = {};\n", steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t next = i + 1 < steps.size() ? steps[i + 1] - 1 : rows_.accumulators.size();
    text += scalar_function(i, steps[i], next);
  }
  return text;
}

std::string AttentionFunctor::move_function() {
  Emitter e = emitter();
  bind_row(e);
  e.nest({rows_.accumulators[form_.value_accumulator].transport});
  StateText(e, rows_, kOfStep, form_.value_accumulator).move_columns("values", "from");
  return function_text(
      "void move(float (&values)[N], const State& from, const State& to, const Row& row) const",
      e.close(), "int N");
}

std::string AttentionFunctor::finish_function() {
  Emitter e = emitter();
  StateText state(e, rows_, {}, form_.value_accumulator);
  bind_row(e);
  state.bind_state("s");
  const std::string length = kernel_.size(rows_.length());
  state.bind(ir::LeafKind::Count, 0, length, DType::Int64);
  for (size_t i : row_results_) e.nest({rows_.finish[i]});
  std::vector<std::string> values;
  for (size_t i : row_results_) {
    const std::string value = state.bind_result(i, length);
    if (is_written(i)) values.push_back(value);
  }
  for (const InvariantPart& part : tail_parts_) values.push_back(e.emit(part.expr));
  e.line(fmt::format("return {{{}}};", fmt::join(values, ", ")));
  return function_text("Tail finish(const State& s, const Row& row) const", e.close());
}

void AttentionFunctor::bind_tail(Emitter& emitter, StateText& state) const {
  state.bind(ir::LeafKind::Count, 0, kernel_.size(rows_.length()), DType::Int64);
  for (size_t i : row_results_) {
    if (!is_written(i)) continue;
    state.bind(ir::LeafKind::Result, static_cast<int64_t>(i), fmt::format("tail.d{}", i),
               rows_.finish[i]->dtype);
  }
  bind_parts(emitter, tail_parts_, "tail", "t");
}

std::string AttentionFunctor::write_function() {
  Emitter e = emitter();
  StateText state(e, rows_, {}, form_.value_accumulator);
  bind_row(e);
  state.bind_state("s");
  bind_tail(e, state);
  std::vector<ir::Expr> roots = rows_.finish;
  for (const FlatStreaming::Output& output : rows_.outputs) {
    roots.insert(roots.end(), {output.body, output.offset});
  }
  e.nest(roots);
  for (const FlatStreaming::Output& output : rows_.outputs) write_output(e, state, output);
  return function_text(
      "void write(const float (&values)[N], const State& s, const Row& row, const Tail& tail, int "
      "first, bool exists) const",
      e.close(), "int N");
}

// The condition under which four columns are stored together; empty if columns are not adjacent.
std::string AttentionFunctor::is_aligned(const FlatStreaming::Output& output) const {
  ir::Expr base = adjacent_from(pool_, output.offset, form_.column);
  if (!base) return "";
  AlignedAccesses accesses(kernel_);
  accesses.add(kernel_.buffer(output.value, true), base);
  return accesses.condition(form_.column->extent(), 4);
}

std::string AttentionFunctor::aligned_outputs() const {
  std::vector<std::string> conditions;
  for (const FlatStreaming::Output& output : rows_.outputs) {
    const std::string one = is_aligned(output);
    if (!one.empty() && one != "false") conditions.push_back(one);
  }
  return function_text("bool aligned_outputs() const",
                       fmt::format("return {};\n", all_of(conditions)));
}

void AttentionFunctor::write_output(Emitter& e, StateText& state,
                                    const FlatStreaming::Output& output) {
  const std::string columns = kernel_.size(form_.column->extent()), together = is_aligned(output);
  e.open();
  e.line(fmt::format("const Group<N> group{{first, exists ? {} - first : 0, {}, {}}};",
                     output.offset->depends_on(form_.column) ? as_int(columns) : "1", columns,
                     together.empty() ? "false" : together));
  GroupText group(e, {form_.column});
  group.write({{output.value, output.body, output.offset}}, [&] {
    state.bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator), "values[v]",
               DType::Float32);
    for (size_t i = 0; i < rows_.finish.size(); ++i) {
      const auto end = row_results_.end();
      const bool known = std::find(row_results_.begin(), end, i) != end;
      if (!known) state.bind_result(i, kernel_.size(rows_.length()));
    }
  });
  const std::string text = e.close();
  e.line(rows_.outputs.size() > 1 ? fmt::format("{{\n{}}}", text) : text);
}

std::string AttentionFunctor::members() const {
  Emitter e = emitter();
  const StateText state(e, rows_, {}, form_.value_accumulator);
  Members row, tail;
  row.add("long long", "line");
  for (size_t i = 0; i < form_.others.size(); ++i) {
    if (form_.others[i]->op == ir::ExprOp::Axis) row.add("long long", fmt::format("c{}", i));
  }
  for (size_t i : row_results_) {
    if (is_written(i)) tail.add(value_type(rows_.finish[i]->dtype), fmt::format("d{}", i));
  }
  return struct_text("State", state.members_with_references()) +
         struct_text("Row", row.text() + declare_parts(block_parts_, "b") +
                                declare_parts(line_parts_, "f")) +
         struct_text("Tail", tail.text() + declare_parts(tail_parts_, "t")) + kernel_.members();
}

std::string AttentionFunctor::text(const std::string& more, bool merges, const std::string& base) {
  const std::string functions = line_function() + row_function() + identity_function() + more +
                                (merges ? scalar_functions() : "") + move_function() +
                                finish_function() + write_function();
  construction_ = fmt::format("Form{{{}{}}}", base.empty() ? "" : "{}, ", kernel_.member_values());
  return struct_text(
      base.empty() ? "Form" : fmt::format("Form : {}", base),
      fmt::format("static constexpr int kColumns = {};\n{}{}",
                  padded_size(form_.column->extent()->integer), members(), functions));
}

}  // namespace redfuser::codegen
