#include "codegen/rows/row_functor.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

using Part = SinglePassConfig::Part;

}  // namespace

RowFunctor::RowFunctor(KernelText& kernel, const FlatStreaming& whole, const FlatStreaming& folded,
                       const SinglePassConfig& config, bool fast, std::vector<size_t> ranked)
    : pool_(kernel.pool()),
      kernel_(kernel),
      whole_(whole),
      folded_(folded),
      config_(config),
      fast_(fast),
      ranked_(std::move(ranked)),
      reads_(kernel, whole, config),
      state_(kernel, folded, fast) {
  std::vector<ir::Expr> lifts, bodies;
  if (config.part != Part::Finish) {
    for (const cascade::Accumulator& a : whole.accumulators) lifts.push_back(a.lift);
  }
  for (const FlatStreaming::Output& output : whole.outputs) bodies.push_back(output.body);
  for (const FlatStreaming::Output* output : outputs(true)) {
    places_.push_back(reads_.output_place(*output));
  }
  for (const RowReads::Item& item : reads_.items()) add_base(item.base);
  for (const RowReads::OutputPlace& place : places_) add_base(place.base);
  const Quotients quotients = fast ? Quotients::Fast : Quotients::Exact;
  row_parts_ = invariant_parts(lifts, inner_axes(), PartsWith::ReadsAndCoordinates, quotients);
  tail_parts_ = invariant_parts(bodies, inner_axes(), PartsWith::Anything, quotients);
}

void RowFunctor::add_base(ir::Expr base) {
  if (!base || base->is_constant() || base->op == ir::ExprOp::Axis) return;
  if (std::find(bases_.begin(), bases_.end(), base) == bases_.end()) bases_.push_back(base);
}

Emitter RowFunctor::emitter(const std::string& lists) const {
  Emitter result(kernel_);
  result.set_fast_math(fast_);
  result.set_ranked_reads([this, lists](ir::Expr read, const std::string& rank) {
    return ranked_text(read, rank, lists);
  });
  return result;
}

// Those with an element per element of the row, or the others; none before states are whole.
RowFunctor::Outputs RowFunctor::outputs(bool mapped) const {
  Outputs result;
  if (config_.part == Part::Partials) return result;
  for (const FlatStreaming::Output& output : whole_.outputs) {
    if (output.maps_back == mapped) result.push_back(&output);
  }
  return result;
}

// The axes within a row.
std::vector<ir::Expr> RowFunctor::inner_axes() const {
  std::vector<ir::Expr> result = {whole_.cascade.stream};
  for (const FlatStreaming::Output& output : whole_.outputs) {
    result.insert(result.end(), output.extra.begin(), output.extra.end());
  }
  return result;
}

void RowFunctor::bind_rows(Emitter& emitter) const {
  for (size_t i = 0; i < whole_.cascade.rows.size(); ++i) {
    emitter.bind(whole_.cascade.rows[i], fmt::format("row.c{}", i));
  }
  for (size_t i = 0; i < bases_.size(); ++i) emitter.bind(bases_[i], fmt::format("row.b{}", i));
  bind_parts(emitter, row_parts_, "row", "f");
}

void RowFunctor::bind_tail(Emitter& emitter) const {
  bind_parts(emitter, tail_parts_, "tail", "r");
}

void RowFunctor::bind_group(Emitter& emitter) const {
  if (reads_.group_offsets().empty()) return;
  emitter.line("const long long group = row.begin + first;");
  emitter.bind(reads_.group_axis(), "group");
  bind_digits(emitter, reads_.group_offsets(), reads_.group_axis(), "group");
}

// Of element `v` of a group.
void RowFunctor::bind_element(Emitter& emitter, const std::vector<ir::Expr>& roots) const {
  emitter.line("const long long at = row.begin + first + v;");
  emitter.bind(whole_.cascade.stream, "at");
  bind_digits(emitter, roots, whole_.cascade.stream, "at");
}

void RowFunctor::bind_reads(Emitter& emitter, bool output) const {
  for (size_t i = 0; i < reads_.items().size(); ++i) {
    const RowReads::Item& item = reads_.items()[i];
    if (!(output ? item.written : item.folded)) continue;
    const bool registers = reads_.source(item, output) == RowReads::Source::Registers;
    for (const auto& [read, place] : item.members) {
      const std::string index =
          item.stride <= 1 ? "v" : fmt::format("v * {} + {}", item.stride, place);
      emitter.bind(read, fmt::format("pick<{}>({}.k{}, {})", reads_.storage(item),
                                     registers ? "kept" : "words", i, index));
    }
  }
}

std::string RowFunctor::row_members() const {
  std::string text = "long long begin;\nint extent;\n";
  for (size_t i = 0; i < whole_.cascade.rows.size(); ++i) {
    text += fmt::format("long long c{};\n", i);
  }
  for (size_t i = 0; i < bases_.size(); ++i) text += fmt::format("long long b{};\n", i);
  for (size_t i = 0; i < reads_.items().size(); ++i) {
    const RowReads::Item& item = reads_.items()[i];
    if (item.base) text += fmt::format("const {}* in{};\n", reads_.storage(item), i);
  }
  return text + declare_parts(row_parts_, "f");
}

std::string RowFunctor::row_function() {
  Emitter e = emitter();
  e.line("Row row;\nrow.begin = begin;\nrow.extent = extent;");
  bind_coordinates(e, whole_.cascade.rows, "number");
  for (size_t i = 0; i < whole_.cascade.rows.size(); ++i) {
    e.line(fmt::format("row.c{} = {};", i, e.emit(whole_.cascade.rows[i])));
  }
  for (size_t i = 0; i < bases_.size(); ++i) {
    e.line(fmt::format("row.b{} = {};", i, e.emit(bases_[i])));
    e.bind(bases_[i], fmt::format("row.b{}", i));
  }
  for (size_t i = 0; i < reads_.items().size(); ++i) {
    const RowReads::Item& item = reads_.items()[i];
    if (!item.base) continue;
    const std::string base = e.emit(item.base);
    e.line(fmt::format("row.in{} = {} + ({} + begin * {});", i, kernel_.buffer(item.value), base,
                       item.stride));
  }
  set_parts(e, row_parts_, "row", "f");
  e.line("return row;");
  return function_text("Row row_of(long long number, long long begin, int extent) const",
                       e.close());
}

std::string RowFunctor::shift_function() const {
  const auto item = reads_.shifted();
  const std::string shift =
      item ? fmt::format("Vector ? 0 : misalignment<kWidth>(row.in{}, free)", *item) : "0";
  return function_text("int shift(const Row& row, int free) const",
                       fmt::format("return {};\n", shift), "bool Vector");
}

std::string RowFunctor::lift_function(size_t phase) {
  Emitter e = emitter();
  bind_rows(e);
  e.open();
  bind_element(e, whole_.streamed());
  bind_reads(e, false);
  state_.lift(e, phase, "t");
  e.line(e.close());
  return function_text(fmt::format("void lift(Phase<{}>, Running& t, const Kept& kept, const "
                                   "Words& words, const Row& row, int first, int v) const",
                                   phase),
                       e.close());
}

std::string RowFunctor::tail_members() const {
  return declare_parts(tail_parts_, "r") + (ranked_.empty() ? "" : "const Lists* lists;\n");
}

std::string RowFunctor::finish_function() {
  Emitter e = emitter("lists.");
  StateText state(e, folded_);
  e.line("Tail tail;");
  bind_rows(e);
  state.bind_state("s");
  state.bind_results(kernel_.size(whole_.length()));
  set_parts(e, tail_parts_, "tail", "r");
  if (!ranked_.empty()) e.line("tail.lists = &lists;");
  e.line("return tail;");
  return function_text(fmt::format("Tail finish(const State& s, const Row& row{}) const",
                                   ranked_.empty() ? "" : ", const Lists& lists"),
                       e.close());
}

// The text that stores elements of a value, in the blocks that do.
std::string RowFunctor::stored(int64_t value, const std::string& text) const {
  if (!config_.everywhere || kernel_.in_shared(value)) return text;
  return fmt::format("if (blockIdx.x == 0 && blockIdx.y == 0) {{\n{}\n}}", text);
}

std::string RowFunctor::write_rows_function() {
  Emitter e = emitter();
  if (config_.everywhere && !outputs(false).empty()) {
    e.line("if (blockIdx.x != 0 || blockIdx.y != 0) return;");
  }
  bind_rows(e);
  bind_tail(e);
  write_row_outputs(e, kernel_, whole_);
  return function_text("void write_rows(const Row& row, const Tail& tail, int lane) const",
                       e.close(), "int Lanes");
}

std::string RowFunctor::map_function() {
  Emitter e = emitter();
  bind_rows(e);
  bind_tail(e);
  e.open();
  bind_element(e, whole_.streamed());
  bind_reads(e, true);
  const Outputs mapped = outputs(true);
  for (size_t i = 0; i < mapped.size(); ++i) {
    const std::string value = e.emit_as(mapped[i]->body, kernel_.dtype_of(mapped[i]->value));
    if (places_[i].base || places_[i].group) e.line(fmt::format("y.y{}[v] = {};", i, value));
    if (places_[i].base) continue;
    e.open();
    bind_digits(e, {mapped[i]->offset}, whole_.cascade.stream, "at");
    e.line(fmt::format("store({}, {}, {});", kernel_.buffer(mapped[i]->value, true),
                       e.emit(mapped[i]->offset), value));
    const std::string text = stored(mapped[i]->value, e.close());
    e.line(places_[i].group ? fmt::format("if constexpr (!Vector) {{\n{}}}", text) : text);
  }
  e.line(e.close());
  return function_text(
      "void map(Values& y, const Kept& kept, const Words& words, const Row& row, const Tail& tail, "
      "int first, int v) const",
      e.close(), "bool Vector");
}

std::string RowFunctor::store_function() {
  Emitter e = emitter();
  bind_rows(e);
  bind_group(e);
  const Outputs mapped = outputs(true);
  for (size_t i = 0; i < mapped.size(); ++i) {
    if (places_[i].base) {
      const std::string text = fmt::format(
          "store_words<kWidth, Vector>({} + {} + row.begin + first, y.y{}, -first, row.extent - "
          "first);",
          kernel_.buffer(mapped[i]->value, true), e.emit(places_[i].base), i);
      e.line(stored(mapped[i]->value, text));
    } else if (places_[i].group) {
      const std::string text =
          fmt::format("if constexpr (Vector) store_aligned<kWidth>({} + {}, y.y{});",
                      kernel_.buffer(mapped[i]->value, true), e.emit(places_[i].group), i);
      e.line(stored(mapped[i]->value, text));
    }
  }
  return function_text("void put(const Values& y, const Row& row, int first) const", e.close(),
                       "bool Vector");
}

std::string RowFunctor::functions() {
  std::string text = row_function() + shift_function() + state_.functions();
  if (config_.part != Part::Finish) {
    text += load_function();
    if (reads_.staging_words() > 0) text += transpose_function();
  }
  text += fetch_function();
  for (size_t p = 0; config_.part != Part::Finish && p < state_.phases(); ++p) {
    text += lift_function(p);
  }
  for (size_t i = 0; i < ranked_.size(); ++i) text += key_function(i) + value_function(i);
  if (config_.part == Part::Partials) return text;
  text += finish_function() + write_rows_function();
  if (!outputs(true).empty()) text += map_function() + store_function();
  return text;
}

std::string RowFunctor::constants() const {
  return fmt::format(
      "static constexpr bool kMapsBack = {};\n"
      "static constexpr bool kTransposes = {}, kRegisters = {};\n"
      "static constexpr int kWidth = {}, kPhases = {};\n",
      !outputs(true).empty(), reads_.staging_words() > 0, reads_.prefetches(), config_.width,
      state_.phases());
}

std::string RowFunctor::text() {
  const std::string body = functions();
  std::string values;
  const Outputs mapped = outputs(true);
  for (size_t i = 0; i < mapped.size(); ++i) {
    values += fmt::format("{} y{}[kWidth];\n", value_type(kernel_.dtype_of(mapped[i]->value)), i);
  }
  return state_.declaration() +
         struct_text("Form", "using State = ::State;\n" +
                                 std::string(ranked_.empty() ? "" : "using Lists = ::Lists;\n") +
                                 constants() + struct_text("Row", row_members()) +
                                 struct_text("Kept", words_members(true)) +
                                 struct_text("Words", words_members(false)) + state_.running() +
                                 struct_text("Tail", tail_members()) +
                                 struct_text("Values", values) + kernel_.members() + body);
}

}  // namespace redfuser::codegen
