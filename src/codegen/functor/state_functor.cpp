#include "codegen/functor/state_functor.h"

#include <fmt/format.h>

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
  return fmt::format("struct Running {{\nState state, part;\n{}}};\n",
                     StateText(e, form_).reference_members());
}

std::string StateFunctor::functions() {
  Emitter lanes = emitter(), pair = emitter(), first = emitter(), next = emitter(),
          last = emitter();
  StateText of_lanes(lanes, form_), of_pair(pair, form_), before(first, form_, kOfRunning),
      after(next, form_, kOfRunning), renewed(last, form_, kOfRunning);
  lanes.line(of_lanes.merged_lanes_body("mask_reduce", "High, Low"));
  pair.line(of_pair.merged_pair_body());
  before.set_old_references("s");
  next.line("t.part = identity();");
  if (counts(form_)) next.line("t.state.count = s.count + added;");
  after.update_references(0, "t.state");
  renewed.renew_references();
  std::string text = fmt::format(
      "static {0}State identity() {{\n{1}}}\n"
      "template <int High, int Low>\n{0}State merged(State s) const {{\n{2}}}\n"
      "{0}State merge(const State& a, const State& b) const {{\n{3}}}\n"
      "{0}void start(Running& t, const State& s) const {{\n{4}}}\n"
      "{0}void begin(Running& t, const State& s, int added) const {{\n{5}}}\n"
      "{0}void renew(Running& t) const {{\n{6}}}\n",
      kInline, of_lanes.identity_body(), lanes.close(), pair.close(), first.close(), next.close(),
      last.close());
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
  return fmt::format(
      "template <bool Whole>\n{}void settle(Phase<{}>, Running& t, const State& s) const {{\n"
      "if constexpr (Whole) {{\n{}}} else {{\n{}}}\n}}\n",
      kInline, phase, variants[0], variants[1]);
}

std::vector<ir::Expr> StateFunctor::lifts(size_t phase) const {
  std::vector<ir::Expr> result;
  for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k) {
    result.push_back(form_.accumulators[k].lift);
  }
  return result;
}

void StateFunctor::lift(Emitter& emitter, size_t phase, const std::string& running) const {
  StateText state(emitter, form_);
  for (size_t r = 0; r < form_.references.size(); ++r) {
    const cascade::Reference& reference = form_.references[r];
    if (static_cast<size_t>(reference.ready_after) > phases_[phase].begin) continue;
    state.bind(ir::LeafKind::NewResult, static_cast<int64_t>(r),
               fmt::format("{}.new{}", running, r), reference.value->dtype);
  }
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
