#include "codegen/attention/attention_functor.h"

#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/functor/state_functor.h"
#include "codegen/text/loop.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

const StateText::ReferenceNames kOfParts = {"part.r", "to.r"}, kOfMove = {"from.r", "to.r"},
                                kOfIdentity = {"s.r", "s.r"};

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

AttentionFunctor::AttentionFunctor(KernelText& kernel, const AttentionSpec& form, bool fast)
    : pool_(kernel.pool()),
      kernel_(kernel),
      form_(form),
      rows_(form.rows),
      fast_(fast),
      counts_(counts(form.rows)) {
  std::vector<ir::Expr> merged, written;
  for (const cascade::Reference& reference : rows_.references) merged.push_back(reference.value);
  for (const cascade::Accumulator& a : rows_.accumulators) {
    if (a.transport) merged.push_back(a.transport);
  }
  row_parts_ = invariant_parts(merged, {}, PartsWith::ReadsAndCoordinates, false);
  for (size_t i = 0; i < rows_.finish.size(); ++i) {
    if (of_row(i)) {
      row_results_.push_back(i);
    } else {
      written.push_back(rows_.finish[i]);
    }
  }
  for (const FlatStreaming::Output& output : rows_.outputs) written.push_back(output.body);
  tail_parts_ = invariant_parts(written, {form.column}, PartsWith::ReadsAndCoordinates, false);
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

std::vector<std::string> AttentionFunctor::scalar_names() const {
  std::vector<std::string> result;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!is_value(k)) result.push_back(fmt::format("a{}", k));
  }
  for (size_t r : used_references(rows_)) result.push_back(fmt::format("r{}", r));
  return result;
}

std::string AttentionFunctor::from_registers(const std::string& state,
                                             const std::string& count) const {
  std::string text;
  for (const std::string& name : scalar_names()) {
    text += fmt::format("{0}.{1} = {1}[h];\n", state, name);
  }
  return text + (counts_ ? fmt::format("{}.count = static_cast<int>({});\n", state, count) : "");
}

std::string AttentionFunctor::to_registers(const std::string& state,
                                           const std::string& count) const {
  std::string text;
  for (const std::string& name : scalar_names()) {
    text += fmt::format("{1}[h] = {0}.{1};\n", state, name);
  }
  return text + (counts_ ? fmt::format("{} = {}.count;\n", count, state) : "");
}

void AttentionFunctor::bind_row(Emitter& emitter) const {
  for (size_t i = 0; i < form_.others.size(); ++i) {
    if (form_.others[i]->op != ir::ExprOp::Axis) continue;
    emitter.bind(form_.others[i], fmt::format("row.c{}", i));
  }
  if (form_.row) emitter.bind(form_.row, "row.line");
  bind_parts(emitter, row_parts_, "row", "f");
}

std::string AttentionFunctor::row_function() {
  Emitter e = emitter();
  e.line("Row row;\nrow.line = line;");
  if (form_.row) e.bind(form_.row, "line");
  bind_coordinates(e, form_.others, "other");
  for (size_t i = 0; i < form_.others.size(); ++i) {
    if (form_.others[i]->op != ir::ExprOp::Axis) continue;
    e.line(fmt::format("row.c{} = {};", i, e.emit(form_.others[i])));
  }
  set_parts(e, row_parts_, "row", "f");
  e.line("return row;");
  return fmt::format("{}Row row_of(long long other, long long line) const {{\n{}}}\n", kInline,
                     e.close());
}

// Adds a scalar to a merged state: accumulator `done` - 1, or the count if it is 0. Settles the
// references that need no accumulator from `next` on.
std::string AttentionFunctor::scalar_function(size_t number, size_t done, size_t next) {
  Emitter add = emitter(), settle = emitter();
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
  return fmt::format(
      "{0}void add(Scalar<{1}>, State& to, const State& part, const Row& row) const {{\n{2}}}\n"
      "{0}void settle(Scalar<{1}>, State& to, const Row& row) const {{\n{3}}}\n",
      kInline, number, add.close(), settle.close());
}

std::string AttentionFunctor::scalar_functions() {
  std::vector<size_t> steps;
  if (counts_) steps.push_back(0);
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!is_value(k)) steps.push_back(k + 1);
  }
  std::string text = fmt::format("static constexpr int kScalars = {};\n", steps.size());
  Emitter e = emitter();
  bind_row(e);
  text += fmt::format(
      "{}State identity(const Row& row) const {{\n{}}}\n", kInline,
      StateText(e, rows_, kOfIdentity, form_.value_accumulator).identity_with_references());
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t next = i + 1 < steps.size() ? steps[i + 1] - 1 : rows_.accumulators.size();
    text += scalar_function(i, steps[i], next);
  }
  return text;
}

std::string AttentionFunctor::move_function() {
  Emitter e = emitter();
  bind_row(e);
  StateText(e, rows_, kOfMove, form_.value_accumulator).move_columns("values", "N", "from");
  return fmt::format(
      "template <int N>\n{}void move(float (&values)[N], const State& from, const State& to, const "
      "Row& row) const {{\n{}}}\n",
      kInline, e.close());
}

std::string AttentionFunctor::finish_function() {
  Emitter e = emitter();
  StateText state(e, rows_, {}, form_.value_accumulator);
  e.line("Tail tail;");
  bind_row(e);
  state.bind_state("s");
  const std::string length = kernel_.size(rows_.length());
  state.bind(ir::LeafKind::Count, 0, length, DType::Int64);
  for (size_t i : row_results_) {
    e.line(fmt::format("tail.d{} = {};", i, state.bind_result(i, length)));
  }
  set_parts(e, tail_parts_, "tail", "t");
  e.line("return tail;");
  return fmt::format("{}Tail finish(const State& s, const Row& row) const {{\n{}}}\n", kInline,
                     e.close());
}

void AttentionFunctor::bind_tail(Emitter& emitter, StateText& state) const {
  state.bind(ir::LeafKind::Count, 0, kernel_.size(rows_.length()), DType::Int64);
  for (size_t i : row_results_) {
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
  for (const FlatStreaming::Output& output : rows_.outputs) {
    e.line(fmt::format("{{\n{}}}", write_output(e, state, output)));
  }
  return fmt::format(
      "{}void write(const float (&values)[4], const State& s, const Row& row, const Tail& tail, "
      "int first, bool exists) const {{\n{}}}\n",
      kInline, e.close());
}

std::string AttentionFunctor::write_output(Emitter& e, StateText& state,
                                           const FlatStreaming::Output& output) {
  const DType dtype = kernel_.dtype_of(output.value);
  const bool columns = output.offset->depends_on(form_.column);
  const int64_t extent = columns ? form_.column->extent()->integer : 1;
  const std::string buffer = kernel_.buffer(output.value, true);
  const auto affine = affine_in(pool_, output.offset, form_.column);
  const bool adjacent = columns && affine && affine->stride->is_constant(1) &&
                        !affine->base->depends_on(form_.column);
  e.open();
  if (adjacent) e.line(fmt::format("{} four[4];", value_type(dtype)));
  e.open();
  e.line("const long long column = first + e;");
  e.bind(form_.column, "column");
  state.bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator), "values[e]",
             DType::Float32);
  for (size_t i = 0; i < rows_.finish.size(); ++i) {
    const bool known = std::find(row_results_.begin(), row_results_.end(), i) != row_results_.end();
    if (!known) state.bind_result(i, kernel_.size(rows_.length()));
  }
  const std::string value = e.emit_as(output.body, dtype);
  e.line(adjacent ? fmt::format("four[e] = {};", value)
                  : fmt::format("if (exists && column < {}) store({}, {}, {});", extent, buffer,
                                e.emit(output.offset), value));
  const std::string element = e.close();
  e.line(unrolled("e", 4, element));
  if (adjacent) {
    std::vector<ir::Expr> units = offset_units(pool_, affine->base);
    units.push_back(form_.column->extent());
    e.bind(form_.column, "first");
    e.line(fmt::format("store_group<4>({0}, {1}, four, exists ? {2} - first : 0, {3});", buffer,
                       e.emit(output.offset), extent,
                       all_aligned(kernel_.multiples(units, 4), {buffer})));
  }
  return e.close();
}

std::string AttentionFunctor::members() const {
  std::string row = "long long line;\n", tail;
  for (size_t i = 0; i < form_.others.size(); ++i) {
    if (form_.others[i]->op == ir::ExprOp::Axis) row += fmt::format("long long c{};\n", i);
  }
  row += declare_parts(row_parts_, "f");
  for (size_t i : row_results_) {
    tail += fmt::format("{} d{};\n", value_type(rows_.finish[i]->dtype), i);
  }
  tail += declare_parts(tail_parts_, "t");
  return fmt::format("struct Row {{\n{}}};\nstruct Tail {{\n{}}};\n{}", row, tail,
                     kernel_.members());
}

std::string AttentionFunctor::text() {
  const std::string functions =
      row_function() + scalar_functions() + move_function() + finish_function() + write_function();
  construction_ = fmt::format("Form{{{}}}", kernel_.member_values());
  Emitter e = emitter();
  return fmt::format(
      "struct State {{\n{}}};\nstruct Form {{\nusing State = ::State;\n"
      "static constexpr int kColumns = {};\n{}{}}};\n",
      StateText(e, rows_, {}, form_.value_accumulator).members_with_references(),
      padded_size(form_.column->extent()->integer), members(), functions);
}

}  // namespace redfuser::codegen
