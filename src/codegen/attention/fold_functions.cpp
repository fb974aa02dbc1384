#include "codegen/attention/fold_functions.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {

bool FoldFunctions::starts() const {
  return counts(rows_) || std::any_of(rows_.references.begin(), rows_.references.end(),
                                      [](const auto& r) { return r.ready_after == 0; });
}

bool FoldFunctions::moves() const {
  return rows_.accumulators[form_.value_accumulator].transport != nullptr;
}

std::string FoldFunctions::constants(size_t phases, const std::string& more) const {
  return fmt::format(
      "static constexpr int kPhases = {}{};\n"
      "static constexpr bool kStarts = {}, kMoves = {};\n",
      phases, more, starts(), moves());
}

std::string FoldFunctions::start() const {
  if (!starts()) return "";
  Emitter e = functor_.emitter();
  functor_.bind_row(e);
  if (counts(rows_)) e.line("to.count = from.count + added;");
  StateText(e, rows_, kOfStep, form_.value_accumulator).update_references(0, "to");
  return function_text("void start(State& to, const State& from, const Row& row, int added) const",
                       e.close());
}

std::string FoldFunctions::settle(size_t number, const Phase& phase, bool over_quads) const {
  Emitter e = functor_.emitter();
  functor_.bind_row(e);
  StateText state(e, rows_, kOfStep, form_.value_accumulator);
  for (const cascade::Reference& r : rows_.references) e.nest({r.value});
  for (size_t k = phase.begin; k < phase.end; ++k) {
    if (!form_.is_value(k)) e.nest({rows_.accumulators[k].transport});
  }
  for (size_t k = phase.begin; k < phase.end; ++k) {
    if (!form_.is_value(k)) {
      const auto combiner = combiner_of(rows_.accumulators[k].reduction);
      state.combine(k,
                    over_quads ? fmt::format("quad_reduce<{}>(part.a{})", combiner, k)
                               : fmt::format("part.a{}", k),
                    "from", "to");
    }
    state.update_references(k + 1, "to");
  }
  return function_text(fmt::format("void settle(Phase<{}>, State& to, const State& from, const "
                                   "State& part, const Row& row) const",
                                   number),
                       e.close());
}

std::string FoldFunctions::same() const {
  if (!moves()) return "";
  std::vector<std::string> equal;
  for (size_t r : used_references(rows_)) equal.push_back(fmt::format("a.r{0} == b.r{0}", r));
  const std::string all = equal.empty() ? "false" : fmt::format("{}", fmt::join(equal, " && "));
  return function_text("static bool same(const State& a, const State& b)",
                       fmt::format("return {};\n", all));
}

std::string FoldFunctions::visited(const VisibleKeys& visible, int keys) const {
  Emitter e = functor_.emitter();
  functor_.bind_row(e);
  e.line(fmt::format("return {};", visible.tiles(e, "first", "last", keys)));
  return function_text("auto visited(const Row& row, long long first, long long last) const",
                       e.close());
}

std::string FoldFunctions::copy(const char* name, const TmaOperand& operand) const {
  Emitter e = functor_.emitter();
  functor_.bind_row(e);
  e.line(fmt::format("ptx_copy_box(to, map, barrier, column, from, {});",
                     fmt::join(coordinates(e, operand), ", ")));
  return function_text(fmt::format("void {}(unsigned to, const TensorMap& map, unsigned barrier, "
                                   "int column, int from, const Row& row) const",
                                   name),
                       e.close());
}

}  // namespace redfuser::codegen
