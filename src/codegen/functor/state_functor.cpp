#include "codegen/functor/state_functor.h"

#include <fmt/format.h>

#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

const StateText::ReferenceNames kOfRunning = {"t.old", "t.new"};

}  // namespace

Emitter StateFunctor::emitter() const {
  Emitter result(kernel_);
  result.set_fast_math(fast_);
  return result;
}

std::string StateFunctor::declaration() const {
  Emitter e = emitter();
  return StateText(e, form_).declaration();
}

std::string StateFunctor::running() const {
  Emitter e = emitter();
  return struct_text("Running", "State state, part;\n" + StateText(e, form_).reference_members());
}

std::string StateFunctor::functions() {
  Emitter empty = emitter(), lanes = emitter(), pair = emitter(), first = emitter(),
          next = emitter(), last = emitter();
  StateText before(first, form_, kOfRunning), after(next, form_, kOfRunning),
      renewed(last, form_, kOfRunning);
  StateText(empty, form_).identity(false);
  StateText(lanes, form_).merged_lanes();
  StateText(pair, form_).merged_pair();
  before.set_old_references("s");
  next.line("t.part = identity();");
  if (counts(form_)) next.line("t.state.count = s.count + added;");
  after.update_references(0, "t.state");
  renewed.renew_references();
  std::string text =
      function_text("static State identity()", empty.close()) +
      function_text("State merged(State s) const", lanes.close(), "int High, int Low") +
      function_text("State merge(const State& a, const State& b) const", pair.close()) +
      function_text("void start(Running& t, const State& s) const", first.close()) +
      function_text("void begin(Running& t, const State& s, int added) const", next.close()) +
      function_text("void renew(Running& t) const", last.close());
  for (size_t phase = 0; phase < phases_.size(); ++phase) text += settle(phase);
  return text;
}

std::string StateFunctor::settle(size_t phase) const {
  std::string variants[2];
  for (const bool whole : {true, false}) {
    Emitter e = emitter();
    StateText state(e, form_, kOfRunning);
    for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k) {
      state.settle(k, fmt::format("t.part.a{}", k), "s", "t.state", whole);
    }
    variants[whole ? 0 : 1] = e.close();
  }
  return function_text(
      fmt::format("void settle(Phase<{}>, Running& t, const State& s) const", phase),
      fmt::format("if constexpr (Whole) {{\n{}}} else {{\n{}}}\n", variants[0], variants[1]),
      "bool Whole");
}

std::vector<ir::Expr> StateFunctor::lifts(size_t phase) const {
  std::vector<ir::Expr> result;
  for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k) {
    result.push_back(form_.accumulators[k].lift);
  }
  return result;
}

void StateFunctor::lift(Emitter& emitter, size_t phase, const std::string& running) const {
  StateText state(emitter, form_, {"", running + ".new"});
  state.bind_new_references(phases_[phase].begin);
  for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    const std::string value =
        is_arg(a.reduction) ? fmt::format("{}{{{}, at}}", state.type_of(a), emitter.emit(a.lift))
                            : emitter.emit_as(a.lift, a.dtype);
    emitter.line(fmt::format("{0}.part.a{1} = {2}::apply({0}.part.a{1}, {3});", running, k,
                             combiner_of(a.reduction), value));
  }
}

}  // namespace redfuser::codegen
