// The functions of a PassFunctor.
#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"

#include <fmt/format.h>
#include "codegen/functor/state_functor.h"
#include "codegen/rows/pass_functor.h"
#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kElement = "const Kept& kept, const Group& group, const Row& row";

}  // namespace

std::string PassFunctor::row_function() {
  Emitter e = emitter();
  e.line("Row row;");
  bind_coordinates(e, form_.cascade.rows, "number");
  for (size_t i = 0; i < form_.cascade.rows.size(); ++i) {
    e.line(fmt::format("row.c{} = {};", i, e.emit(form_.cascade.rows[i])));
  }
  for (size_t i = 0; i < bases_.size(); ++i) {
    e.line(fmt::format("row.b{} = {};", i, e.emit(bases_[i])));
  }
  set_parts(e, row_parts_, "row", "f");
  e.line("return row;");
  return function_text("Row row_of(long long number) const", e.close());
}

std::string PassFunctor::fetch(const std::string& tag, const std::vector<ir::Expr>& roots,
                               bool keeping) {
  std::string text;
  for (ir::Expr read : group_reads(roots, keeping)) {
    const std::string buffer = kernel_.buffer(read->integer);
    ir::Expr base = consecutive(read->args[0]);
    accesses_.add(buffer, base);
    text += fmt::format("load_group<kWidth>(group.g{}, {}, row.b{} + first, valid, vector);\n",
                        group_number(read), buffer, base_number(base));
  }
  return function_text(fmt::format("void fetch({}, Group& group, const Row& row, long long first, "
                                   "long long valid, bool vector) const",
                                   tag),
                       text);
}

std::string PassFunctor::keep_functions() {
  if (kept_.empty()) return "";
  Emitter e = emitter();
  bind_row(e);
  e.open();
  bind_element(e, kept_, true);
  for (size_t i = 0; i < kept_.size(); ++i) {
    e.line(fmt::format("kept.k{}[v] = {};", i, e.emit(kept_[i])));
  }
  e.line(e.close());
  return fetch("Keeping", kept_, true) +
         function_text(
             "void keep(Kept& kept, const Group& group, const Row& row, long long at, int v) const",
             e.close());
}

std::string PassFunctor::pass_functions(size_t pass) {
  std::string reduce;
  std::vector<ir::Expr> lifts;
  for (size_t k : plain(pass)) {
    lifts.push_back(form_.accumulators[k].lift);
    // Lists of accumulators before it have two slots.
    const auto lists = std::lower_bound(lists_.begin(), lists_.end(), k) - lists_.begin();
    reduce +=
        fmt::format("s.a{0} = over.template all<{1}>(s.a{0}, {2});\n", k,
                    combiner_of(form_.accumulators[k].reduction), k + static_cast<size_t>(lists));
  }
  std::string text = start_function(pass);
  if (!lifts.empty()) {
    text += fetch(fmt::format("Phase<{}>", pass), lifts) + lift_function(pass) +
            function_text(
                fmt::format("void reduce(Phase<{}>, Results& s, const Over& over) const", pass),
                reduce, "typename Over");
  }
  for (size_t k : ranked(pass)) text += list_functions(k);
  return text + settle_function(pass);
}

std::string PassFunctor::start_function(size_t pass) const {
  Emitter e = emitter();
  StateText state(e, form_);
  bind_row(e);
  bind_references(state, pass);
  for (size_t k : plain(pass)) {
    const cascade::Accumulator& a = form_.accumulators[k];
    e.line(is_arg(a.reduction) ? fmt::format("s.a{} = {{0, -1}};", k)
                               : fmt::format("s.a{} = {};", k, identity_of(a.reduction, a.dtype)));
  }
  set_parts(e, pass_parts_[pass], "s", fmt::format("p{}_", pass));
  return function_text(fmt::format("void start(Phase<{}>, Results& s, const Row& row) const", pass),
                       e.close());
}

std::string PassFunctor::lift_function(size_t pass) {
  Emitter e = emitter();
  StateText state(e, form_);
  bind_pass(e, state, pass);
  e.open();
  std::vector<ir::Expr> lifts;
  for (size_t k : plain(pass)) lifts.push_back(form_.accumulators[k].lift);
  bind_element(e, lifts);
  for (size_t k : plain(pass)) {
    const cascade::Accumulator& a = form_.accumulators[k];
    const std::string value = is_arg(a.reduction)
                                  ? fmt::format("{}{{{}, at}}", state.type_of(a), e.emit(a.lift))
                                  : e.emit_as(a.lift, a.dtype);
    e.line(fmt::format("if (exists) s.a{0} = {1}::apply(s.a{0}, {2});", k, combiner_of(a.reduction),
                       value));
  }
  e.line(e.close());
  return function_text(
      fmt::format("void lift(Phase<{}>, Results& s, {}, long long at, int v, bool exists) const",
                  pass, kElement),
      e.close());
}

std::string PassFunctor::settle_function(size_t pass) const {
  Emitter e = emitter();
  StateText state(e, form_);
  state.bind_state("s");
  bind_references(state, pass);
  for (size_t r = 0; r < form_.references.size(); ++r) {
    const auto ready = static_cast<size_t>(form_.references[r].ready_after);
    if (ready > passes_[pass].end || (pass > 0 && ready <= passes_[pass - 1].end)) continue;
    e.line(fmt::format("s.r{} = {};", r, e.emit(form_.references[r].value)));
    bind_reference(state, r);
  }
  return function_text(fmt::format("void settle(Phase<{}>, Results& s) const", pass), e.close());
}

std::string PassFunctor::list_functions(size_t accumulator) {
  const cascade::Accumulator& a = form_.accumulators[accumulator];
  const auto type = value_type(a.lift->dtype);
  const size_t number = list_number(accumulator);
  const auto pass = std::find_if(passes_.begin(), passes_.end(),
                                 [&](const Phase& phase) { return accumulator < phase.end; });
  Emitter e = emitter();
  StateText state(e, form_);
  bind_pass(e, state, static_cast<size_t>(pass - passes_.begin()));
  e.open();
  bind_element(e, {a.lift});
  e.line(fmt::format("return {{{}, at}};", e.emit(a.lift)));
  e.line(e.close());
  return fetch(fmt::format("Picks<{}>", number), {a.lift}) +
         function_text(fmt::format("static RankedList<{}, {}, {}, {}> list(Picks<{}>)", type,
                                   wants_large(a.reduction), a.k, accumulator + number, number),
                       "return {};\n") +
         function_text(
             fmt::format("static Ranked<{}>* entries(Picks<{}>, Results& s)", type, number),
             fmt::format("return s.a{};\n", accumulator)) +
         function_text(fmt::format("Ranked<{}> element(Picks<{}>, {}, const Results& s, long long "
                                   "at, int v) const",
                                   type, number, kElement),
                       e.close());
}

std::string PassFunctor::finish_function() {
  Emitter e = emitter();
  StateText state(e, form_);
  e.line("Tail tail;");
  bind_row(e);
  state.bind_state("s");
  state.bind_results(kernel_.size(form_.length()));
  set_parts(e, tail_parts_, "tail", "t");
  e.line("return tail;");
  return function_text("Tail finish(const Results& s, const Row& row) const", e.close());
}

std::string PassFunctor::write_rows_function() {
  Emitter e = emitter();
  bind_row(e);
  bind_tail(e);
  write_row_outputs(e, kernel_, form_);
  return function_text(
      "void write_rows(const Results& s, const Row& row, const Tail& tail, int lane) const",
      e.close(), "int Lanes");
}

std::string PassFunctor::map_functions() {
  const Outputs mapped = outputs(true);
  std::vector<ir::Expr> bodies;
  for (const FlatStreaming::Output* output : mapped) bodies.push_back(output->body);
  Emitter e = emitter();
  bind_row(e);
  bind_tail(e);
  e.open();
  bind_element(e, bodies);
  std::string put;
  for (size_t i = 0; i < mapped.size(); ++i) {
    const std::string buffer = kernel_.buffer(mapped[i]->value, true);
    const std::string value = e.emit_as(mapped[i]->body, kernel_.dtype_of(mapped[i]->value));
    ir::Expr base = consecutive(mapped[i]->offset);
    if (!base) {
      e.line(
          fmt::format("if (exists) store({}, {}, {});", buffer, e.emit(mapped[i]->offset), value));
      continue;
    }
    e.line(fmt::format("y.y{}[v] = {};", i, value));
    accesses_.add(buffer, base);
    put += fmt::format("store_group<kWidth>({}, row.b{} + first, y.y{}, valid, vector);\n", buffer,
                       base_number(base), i);
  }
  e.line(e.close());
  return fetch("Writing", bodies) +
         function_text(fmt::format("void map(Values& y, const Results& s, {}, const Tail& tail, "
                                   "long long at, int v, bool exists) const",
                                   kElement),
                       e.close()) +
         function_text(
             "void put(const Values& y, const Row& row, long long first, long long valid, bool "
             "vector) const",
             put);
}

}  // namespace redfuser::codegen
