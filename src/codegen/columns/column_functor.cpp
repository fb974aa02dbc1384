#include "codegen/columns/column_functor.h"

#include "codegen/text/operation_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/functor/stream_digits.h"
#include "codegen/text/function_text.h"

namespace redfuser::codegen {

ColumnFunctor::ColumnFunctor(KernelText& kernel, const ColumnForm& form, int width, bool fast)
    : pool_(kernel.pool()),
      kernel_(kernel),
      columns_(form),
      form_(form.rows),
      width_(width),
      fast_(fast),
      state_(kernel, form.rows, fast),
      accesses_(kernel) {
  std::vector<ir::Expr> lifts, bodies;
  for (const cascade::Accumulator& a : form_.accumulators) {
    collect(a.lift, false);
    lifts.push_back(a.lift);
  }
  for (const FlatStreaming::Output& output : form_.outputs) {
    add_output(output);
    if (!output.maps_back) continue;
    collect(output.body, true);
    bodies.push_back(output.body);
  }
  const Quotients quotients = fast ? Quotients::Fast : Quotients::Exact;
  row_parts_ = invariant_parts(lifts, {form_.cascade.stream}, PartsWith::Reads, quotients);
  tail_parts_ =
      invariant_parts(bodies, {form_.cascade.stream}, PartsWith::ReadsAndLeaves, quotients);
}

Emitter ColumnFunctor::emitter() const {
  Emitter result(kernel_);
  result.set_fast_math(fast_);
  return result;
}

void ColumnFunctor::collect(ir::Expr root, bool output) {
  visit(root, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Read && e->integer >= 0 && e->depends_on(form_.cascade.stream)) {
      add(e, output);
    }
  });
}

void ColumnFunctor::add(ir::Expr read, bool output) {
  for (Item& item : reads_) {
    if (item.read != read) continue;
    (output ? item.written : item.folded) = true;
    return;
  }
  const auto place = column_offset(pool_, columns_, read->args[0]);
  if (!place) return;
  Item item{read->integer, read, *place};
  (output ? item.written : item.folded) = true;
  item.vector = !place->shared && alignable(read->integer, *place, false);
  reads_.push_back(item);
}

void ColumnFunctor::add_output(const FlatStreaming::Output& output) {
  Item item{output.value, nullptr, {}};
  const auto place = column_offset(pool_, columns_, output.offset);
  if (place && !place->shared) {
    item.place = *place;
    if (!output.maps_back) item.place.stride = nullptr;
    item.vector = alignable(output.value, *place, true);
  }
  outputs_.push_back(item);
}

// Groups start where a multiple of `width` stands on the axis across.
bool ColumnFunctor::alignable(int64_t value, const ColumnOffset& place, bool written) {
  ir::Expr start = pool_.substitute(place.offset, {{columns_.across, pool_.integer(0)}});
  std::vector<ir::Expr> units = offset_units(pool_, start);
  units.push_back(columns_.columns());
  if (kernel_.multiples(units, width_) == "false") return false;
  accesses_.add(kernel_.buffer(value, written), units);
  return true;
}

std::string ColumnFunctor::vector_condition() {
  if (width_ == 1) return "true";
  if (accesses_.empty()) return "false";
  return accesses_.condition(columns_.columns(), width_);
}

int ColumnFunctor::words_of(const Item& item) const {
  const int elements = item.place.shared ? 1 : width_;
  return (elements * static_cast<int>(size_of(kernel_.dtype_of(item.value))) + 3) / 4;
}

int ColumnFunctor::words() const {
  int total = 0;
  for (const Item& item : reads_) total += words_of(item);
  return total;
}

void ColumnFunctor::bind_rows(Emitter& emitter, const std::string& column) const {
  for (size_t i = 0; i < columns_.outer.size(); ++i) {
    emitter.bind(columns_.outer[i], fmt::format("row.c{}", i));
  }
  emitter.bind(columns_.across, column);
}

// `at`, the streamed element of a function's `position`, and its digits in `roots`.
void ColumnFunctor::bind_element(Emitter& emitter, const std::vector<ir::Expr>& roots,
                                 const std::string& column) const {
  emitter.line("const long long at = position;");
  emitter.bind(form_.cascade.stream, "at");
  bind_rows(emitter, column);
  bind_digits(emitter, roots, form_.cascade.stream, "position");
}

// The expressions, and the offsets of what they read beside an element's words.
std::vector<ir::Expr> ColumnFunctor::computed(std::vector<ir::Expr> roots) const {
  std::vector<ir::Expr> offsets;
  for (ir::Expr root : roots) {
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      const bool held = std::any_of(reads_.begin(), reads_.end(),
                                    [&](const Item& item) { return item.read == e; });
      if (!held) offsets.push_back(e->args[0]);
    });
  }
  roots.insert(roots.end(), offsets.begin(), offsets.end());
  return roots;
}

// The address of an item's group at the streamed element `at`.
std::string ColumnFunctor::pointer(Emitter& emitter, const Item& item,
                                   const std::string& name) const {
  const std::string buffer = kernel_.buffer(item.value, item.read == nullptr);
  if (item.place.stride) {
    return fmt::format("row.{} + at * {}", name, kernel_.size(item.place.stride));
  }
  return fmt::format("{} + {}", buffer, emitter.emit(item.place.offset));
}

std::string ColumnFunctor::row_members() const {
  std::string text = "long long column, held;\nint valid;\n";
  for (size_t i = 0; i < columns_.outer.size(); ++i) text += fmt::format("long long c{};\n", i);
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (reads_[i].place.stride) text += fmt::format("const {}* in{};\n", storage(reads_[i]), i);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].place.stride) text += fmt::format("{}* out{};\n", storage(outputs_[i]), i);
  }
  for (size_t i = 0; i < row_parts_.size(); ++i) {
    text += fmt::format("{} f{}[kWidth];\n", value_type(row_parts_[i].expr->dtype), i);
  }
  return text;
}

std::string ColumnFunctor::row_function() {
  Emitter e = emitter();
  const std::string columns = kernel_.size(columns_.columns());
  e.line("Row row;\nrow.column = column;");
  e.line(fmt::format(
      "row.valid = static_cast<int>(max_of(min_of({} - column, kWidth + 0ll), 0ll));", columns));
  e.line(fmt::format("row.held = Vector ? min_of(column, {} - kWidth) : column;", columns));
  Emitter at = emitter();
  bind_coordinates(at, columns_.outer, "outer");
  for (size_t i = 0; i < columns_.outer.size(); ++i) {
    at.line(fmt::format("row.c{} = {};", i, at.emit(columns_.outer[i])));
  }
  e.line(at.close());
  Emitter from = emitter();
  bind_rows(from, "row.held");
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (!reads_[i].place.stride) continue;
    from.line(fmt::format("row.in{} = {} + {};", i, kernel_.buffer(reads_[i].value),
                          from.emit(reads_[i].place.base)));
  }
  e.line(fmt::format("{{\n{}}}", from.close()));
  bind_rows(e, "column");
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].place.stride) continue;
    e.line(fmt::format("row.out{} = {} + {};", i, kernel_.buffer(outputs_[i].value, true),
                       e.emit(outputs_[i].place.base)));
  }
  e.line("return row;");
  return function_text("Row row_of(long long outer, long long column) const", e.close());
}

// The row v of a thread, or the last one, whose reads are within bounds, in place of one behind it.
void ColumnFunctor::bind_own(Emitter& emitter) const {
  emitter.line(fmt::format("const long long own = min_of(row.column + v, {} - 1);",
                           kernel_.size(columns_.columns())));
  bind_rows(emitter, "own");
}

std::string ColumnFunctor::parts_function() {
  Emitter e = emitter();
  if (!row_parts_.empty()) bind_own(e);
  for (size_t i = 0; i < row_parts_.size(); ++i) {
    e.line(fmt::format("row.f{}[v] = {};", i, e.emit(row_parts_[i].expr)));
  }
  return function_text("void set_parts(Row& row, int v) const", e.close());
}

std::string ColumnFunctor::words_members() const {
  std::string text;
  for (size_t i = 0; i < reads_.size(); ++i) {
    text += fmt::format("unsigned k{}[{}];\n", i, words_of(reads_[i]));
  }
  return text;
}

// The reads of an element, as its words hold them.
void ColumnFunctor::bind_words(Emitter& emitter) const {
  for (size_t i = 0; i < reads_.size(); ++i) {
    emitter.bind(reads_[i].read, fmt::format("pick<{}>(words.k{}, {})", storage(reads_[i]), i,
                                             reads_[i].place.shared ? "0" : "v"));
  }
}

std::string ColumnFunctor::load_function() {
  Emitter e = emitter();
  std::vector<ir::Expr> offsets;
  for (const Item& item : reads_) {
    if (!item.place.stride) offsets.push_back(item.place.offset);
  }
  bind_element(e, offsets, "row.held");
  for (size_t i = 0; i < reads_.size(); ++i) {
    const Item& item = reads_[i];
    std::vector<std::string> sets;
    if (item.folded) sets.emplace_back("Set == Reads::Folded");
    if (item.written) sets.emplace_back("Set == Reads::Written");
    if (item.written && !item.folded) sets.emplace_back("Set == Reads::Remaining");
    e.open();
    const std::string from = pointer(e, item, fmt::format("in{}", i));
    e.line(item.place.shared
               ? fmt::format("load_column<{}, 1, false>(words.k{}, {}, 1);", storage(item), i, from)
               : fmt::format(
                     "load_column<{}, kWidth, {}>(words.k{}, {}, Vector ? kWidth : row.valid);",
                     storage(item), flag(item), i, from));
    const std::string body = e.close();
    e.line(fmt::format("if constexpr ({}) {{\n{}}}", fmt::join(sets, " || "), body));
  }
  return function_text("void read(Words& words, const Row& row, int position) const", e.close(),
                       "Reads Set");
}

std::string ColumnFunctor::lift_function(size_t number) {
  Emitter e = emitter();
  bind_element(e, computed(state_.lifts(number)));
  e.open();
  e.bind(columns_.across, "(row.column + v)");
  for (size_t i = 0; i < row_parts_.size(); ++i) {
    e.bind(row_parts_[i].expr, fmt::format("row.f{}[v]", i));
  }
  bind_words(e);
  state_.lift(e, number, "t");
  e.line(e.close());
  return function_text(
      fmt::format("void lift(Phase<{}>, Running& t, const Words& words, const Row& "
                  "row, int position, int v) const",
                  number),
      e.close());
}

std::string ColumnFunctor::tail_members() const {
  std::string text = declare_parts(tail_parts_, "r");
  for (size_t i = 0; i < form_.outputs.size(); ++i) {
    if (form_.outputs[i].maps_back) continue;
    text += fmt::format("{} y{};\n", value_type(kernel_.dtype_of(form_.outputs[i].value)), i);
  }
  return text;
}

std::string ColumnFunctor::value_members() const {
  std::string text;
  for (size_t i = 0; i < form_.outputs.size(); ++i) {
    if (!form_.outputs[i].maps_back || !outputs_[i].place.offset) continue;
    text +=
        fmt::format("{} y{}[kWidth];\n", value_type(kernel_.dtype_of(form_.outputs[i].value)), i);
  }
  return text;
}

std::string ColumnFunctor::finish_function() {
  Emitter e = emitter();
  StateText state(e, form_);
  e.line("Tail tail;");
  bind_own(e);
  state.bind_state("s");
  state.bind_results(kernel_.size(pool_.mul(form_.length(), pool_.integer(columns_.beside))));
  set_parts(e, tail_parts_, "tail", "r");
  for (size_t i = 0; i < form_.outputs.size(); ++i) {
    const FlatStreaming::Output& output = form_.outputs[i];
    if (output.maps_back) continue;
    e.line(
        fmt::format("tail.y{} = {};", i, e.emit_as(output.body, kernel_.dtype_of(output.value))));
  }
  e.line("return tail;");
  return function_text("Tail finish(const State& s, const Row& row, int v) const", e.close());
}

std::string ColumnFunctor::map_function() {
  Emitter e = emitter();
  std::vector<ir::Expr> roots;
  for (size_t i = 0; i < form_.outputs.size(); ++i) {
    if (!form_.outputs[i].maps_back) continue;
    roots.push_back(form_.outputs[i].body);
    if (!outputs_[i].place.offset) roots.push_back(form_.outputs[i].offset);
  }
  bind_element(e, computed(roots));
  e.open();
  e.bind(columns_.across, "(row.column + v)");
  bind_parts(e, tail_parts_, "tail", "r");
  e.open();
  bind_words(e);
  for (size_t i = 0; i < form_.outputs.size(); ++i) {
    const FlatStreaming::Output& output = form_.outputs[i];
    if (!output.maps_back) continue;
    const std::string value = e.emit_as(output.body, kernel_.dtype_of(output.value));
    e.line(outputs_[i].place.offset
               ? fmt::format("y.y{}[v] = {};", i, value)
               : fmt::format("if (v < row.valid) store({}, {}, {});",
                             kernel_.buffer(output.value, true), e.emit(output.offset), value));
  }
  e.line(e.close());
  e.line(e.close());
  return function_text(
      "void map(Values& y, const Words& words, const Row& row, const Tail& tail, int position, "
      "int v) const",
      e.close());
}

std::string ColumnFunctor::put_function() {
  Emitter e = emitter();
  std::vector<ir::Expr> offsets;
  for (size_t i = 0; i < form_.outputs.size(); ++i) {
    const ColumnOffset& place = outputs_[i].place;
    if (form_.outputs[i].maps_back && place.offset && !place.stride)
      offsets.push_back(place.offset);
  }
  bind_element(e, offsets);
  for (size_t i = 0; i < form_.outputs.size(); ++i) {
    if (!form_.outputs[i].maps_back || !outputs_[i].place.offset) continue;
    e.line(fmt::format("store_column<kWidth, {}>({}, y.y{}, row.valid);", flag(outputs_[i]),
                       pointer(e, outputs_[i], fmt::format("out{}", i)), i));
  }
  return function_text("void put(const Values& y, const Row& row, int position) const", e.close());
}

// Of outputs without the streamed axis: those whose neighbours across are adjacent in one function,
// the others in one of a row.
std::string ColumnFunctor::row_functions() {
  Emitter all = emitter(), one = emitter();
  bind_rows(all, "row.column");
  bind_rows(one, "(row.column + v)");
  for (size_t i = 0; i < form_.outputs.size(); ++i) {
    const FlatStreaming::Output& output = form_.outputs[i];
    if (output.maps_back) continue;
    const std::string buffer = kernel_.buffer(output.value, true);
    if (outputs_[i].place.offset) {
      all.line(fmt::format("store_member<kWidth, {}>({} + {}, tails, &Tail::y{}, row.valid);",
                           flag(outputs_[i]), buffer, all.emit(output.offset), i));
    } else {
      one.line(fmt::format("store({}, {}, tail.y{});", buffer, one.emit(output.offset), i));
    }
  }
  return function_text("void write_rows(const Row& row, const Tail (&tails)[kWidth]) const",
                       all.close()) +
         function_text("void write_row(const Row& row, const Tail& tail, int v) const",
                       one.close());
}

std::string ColumnFunctor::text() {
  std::string functions = state_.functions() + row_function() + parts_function() + load_function();
  for (size_t i = 0; i < state_.phases(); ++i) functions += lift_function(i);
  functions += finish_function();
  if (maps_back(form_)) functions += map_function() + put_function();
  functions += row_functions();
  const std::string constants = fmt::format(
      "using State = ::State;\nstatic constexpr int kWidth = {}, kPhases = {}, kBeside = {};\n"
      "static constexpr bool kMapsBack = {};\n",
      width_, state_.phases(), columns_.beside, maps_back(form_));
  const std::string types =
      struct_text("Row", row_members()) + struct_text("Words", words_members()) + state_.running() +
      struct_text("Tail", tail_members()) + struct_text("Values", value_members());
  return state_.declaration() + "template <bool Vector>\n" +
         struct_text("Form", constants + types + kernel_.members() + functions);
}

}  // namespace redfuser::codegen
