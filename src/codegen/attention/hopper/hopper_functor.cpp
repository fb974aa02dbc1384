#include "codegen/attention/hopper/hopper_functor.h"

#include <fmt/format.h>

#include "codegen/attention/hopper/element_text.h"
#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

// Divisions of columns by a value that the row shares become products, for results rounded to 16
// bits.
class Reciprocals {
 public:
  Reciprocals(ir::ExprPool& pool, const AttentionSpec& form) : pool_(pool), form_(form) {}
  ir::Expr operator()(ir::Expr e) const {
    return pool_.rewrite(e, [&](ir::Expr x) -> ir::Expr {
      if (x->op != ir::ExprOp::Div || !is_float(x->dtype)) return nullptr;
      if (is_of_column(x->args[1]) || !is_of_column(x->args[0])) return nullptr;
      return pool_.mul((*this)(x->args[0]), pool_.make(ir::ExprOp::Reciprocal, {x->args[1]}));
    });
  }

 private:
  bool is_of_column(ir::Expr e) const {
    return e->depends_on(form_.column) || uses_state(e, form_.value_accumulator);
  }
  ir::ExprPool& pool_;
  const AttentionSpec& form_;
};

AttentionSpec with_reciprocals(const KernelText& kernel, const AttentionSpec& form) {
  AttentionSpec result = form;
  const Reciprocals reciprocals(kernel.pool(), form);
  for (const FlatStreaming::Output& output : form.rows.outputs) {
    if (size_of(kernel.dtype_of(output.value)) != 2) return result;
  }
  for (ir::Expr& finish : result.rows.finish) finish = reciprocals(finish);
  return result;
}

const char* tag(bool whole) { return whole ? "Scores<true>" : "Scores<false>"; }

}  // namespace

HopperFunctor::HopperFunctor(StepBuilder& builder, const AttentionSpec& form,
                             const HopperScores& scores, const HopperOperands& operands,
                             const HopperConfig& config)
    : pool_(builder.pool()),
      form_(with_reciprocals(builder.kernel(), form)),
      scores_(scores),
      operands_(operands),
      rows_(form_.rows),
      keys_(config.keys),
      visible_(pool_, form, scores.mask),
      by_tile_(cascade::tile_ranges(pool_, scores.by_tile, {form.row}, form.rows.cascade.stream)),
      phases_(scores.masked.phases),
      kernel_(builder.kernel()),
      functor_(kernel_, form_, form.rounded_weights, inner()),
      fold_(kernel_, form_, functor_),
      bias_(kernel_, form_, scores, config, functor_) {}

// What the main loop computes for each element; a term by its place does so for itself.
std::vector<ir::Expr> HopperFunctor::inner() const {
  std::vector<ir::Expr> result;
  for (const bool whole : {false, true}) {
    if (score(whole).kept) result.push_back(score(whole).kept_factors.rest);
    for (const cascade::Accumulator& a : score(whole).rows.accumulators) result.push_back(a.lift);
  }
  for (const TmaOperand* operand : {&operands_.query, &operands_.key, &operands_.value}) {
    result.insert(result.end(), operand->coordinates.begin(), operand->coordinates.end());
  }
  return result;
}

bool HopperFunctor::is_even() const {
  return rows_.length()->is_constant() && rows_.length()->integer % keys_ == 0;
}

std::string HopperFunctor::lines() { return kernel_.size(form_.row->extent()); }
std::string HopperFunctor::length() { return kernel_.size(rows_.length()); }
std::string HopperFunctor::query(int lines) {
  return kernel_.view(TmaTile{lines}.view(operands_.query));
}
std::string HopperFunctor::key(int lines) {
  return kernel_.view(TmaTile{lines}.view(operands_.key));
}
std::string HopperFunctor::value(int lines) {
  return kernel_.view(TmaTile{lines}.view(operands_.value));
}

// Elements are rounded to 16 bits as weights.
Emitter HopperFunctor::emitter() {
  Emitter result(kernel_);
  result.set_fast_exp(true);
  functor_.bind_row(result);
  return result;
}

std::string HopperFunctor::whole() {
  Emitter e = emitter();
  const cascade::TileRanges& ranges = visible_.ranges();
  e.bind(ranges.key.first, "first");
  e.bind(ranges.key.last, fmt::format("(first + {})", keys_ - 1));
  if (!ranges.rows.empty()) {
    e.bind(ranges.rows[0].first, "first_row");
    e.bind(ranges.rows[0].last, "last_row");
  }
  e.line(fmt::format("return {};", e.emit(by_tile_.full)));
  return function_text("bool whole(const Row& row, int first, int first_row, int last_row) const",
                       e.close());
}

bool HopperFunctor::maps() const {
  return scores_.whole.tanh_scale != 0 || scores_.masked.tanh_scale != 0;
}

std::string HopperFunctor::map(bool whole) const {
  const double scale = score(whole).tanh_scale;
  return function_text(
      fmt::format("void map({}, float (&s)[N][4]) const", tag(whole)),
      scale == 0 ? std::string() : fmt::format("tanh_tile(s, {});\n", float_text(scale)), "int N");
}

std::string HopperFunctor::lift(bool whole, size_t phase) {
  Emitter e = emitter();
  const ScoreSpec& spec = score(whole);
  StateText state(e, spec.rows, kOfStep, form_.value_accumulator);
  state.bind_new_references(phases_[phase].begin);
  const auto bias = bias_.values();
  e.open();
  ElementText(e, form_, spec, phase, bias).write(!whole && !is_even());
  const std::string element = e.close();
  return function_text(
      fmt::format("void lift({}, Phase<{}>, State& part, float& s, const Pair& pair, const State& "
                  "to, const Row& row, const KeyPlace& at) const",
                  tag(whole), phase),
      e.close() + element);
}

std::string HopperFunctor::reduce(bool whole, size_t phase) const {
  const ScoreSpec& spec = score(whole);
  std::string text;
  for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k) {
    if (form_.is_value(k)) continue;
    const std::string_view op = combiner_of(rows_.accumulators[k].reduction);
    std::string value = fmt::format("{0}::apply(part.a{1}, other.a{1})", op, k);
    if (!spec.per_lane[k]) value = fmt::format("quad_reduce<{}>({})", op, value);
    const double scale = spec.reduces_kept(k) ? spec.kept_factors.constant : 1;
    if (scale != 1) value += " * " + float_text(scale);
    text += fmt::format("part.a{} = {};\n", k, value);
  }
  return function_text(
      fmt::format("void reduce({}, Phase<{}>, State& part, const State& other) const", tag(whole),
                  phase),
      text);
}

std::string HopperFunctor::join_lanes() const {
  std::string text;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (form_.is_value(k) || !scores_.masked.per_lane[k]) continue;
    text += fmt::format("s.a{0} = quad_reduce<{1}>(s.a{0});\n", k,
                        combiner_of(rows_.accumulators[k].reduction));
  }
  return function_text("static void join_lanes(State& s)", text);
}

std::string HopperFunctor::scores() {
  const bool even = is_even();
  const bool always = even && !scores_.by_key && by_tile_.full->is_constant(1);
  std::string text =
      fold_.constants(phases_.size(), "") +
      fmt::format("static constexpr bool kEven = {}, kAlwaysWhole = {};\n", even, always);
  text += fold_.start();
  if (!always) text += whole();
  for (const bool all : {true, false}) {
    if (always && !all) continue;
    if (maps()) text += map(all);
    for (size_t phase = 0; phase < phases_.size(); ++phase) {
      if (bias_.loads()) text += bias_.load_bias(score(all), phase, tag(all));
      text += lift(all, phase) + reduce(all, phase);
    }
  }
  for (size_t phase = 0; phase < phases_.size(); ++phase) {
    text += fold_.settle(phase, phases_[phase], false);
  }
  return text + join_lanes() + fold_.same();
}

// each() of the scalars of a phase, of those of which lanes have parts until the end, of all, and
// of the references.
std::string HopperFunctor::exchange() const {
  const auto each = [](const std::string& which, const std::string& members) {
    return function_text(fmt::format("static void each({}, S& s, const V& visit)", which), members,
                         "typename S, typename V");
  };
  const auto scalars = [&](size_t begin, size_t end, const auto& wanted) {
    std::string members;
    for (size_t k = begin; k < end; ++k) {
      if (form_.is_value(k) || !wanted(k)) continue;
      members += fmt::format("visit(s.a{0}, {0}, {1}{{}});\n", k,
                             combiner_of(rows_.accumulators[k].reduction));
    }
    return members;
  };
  const auto exchanged = [&](const std::string& which, const std::string& members) {
    return fmt::format("static __device__ constexpr bool exchanges({}) {{ return {}; }}\n", which,
                       !members.empty()) +
           (members.empty() ? std::string() : each(which, members));
  };
  const auto until_the_end = [&](size_t k) { return scores_.masked.per_lane[k]; };
  const size_t all = rows_.accumulators.size();
  std::string text, references;
  bool exchanges = false;
  for (size_t phase = 0; phase < phases_.size(); ++phase) {
    const std::string members = scalars(phases_[phase].begin, phases_[phase].end,
                                        [&](size_t k) { return !until_the_end(k); });
    exchanges |= !members.empty();
    text += exchanged(fmt::format("Phase<{}>", phase), members);
  }
  for (size_t r : used_references(rows_)) {
    references += fmt::format("visit(s.r{0}, {0}, Replace{{}});\n", r);
  }
  return text + exchanged("Rest", scalars(0, all, until_the_end)) +
         each("Scalars", scalars(0, all, [](size_t) { return true; })) +
         each("References", references) +
         fmt::format(
             "static constexpr int kScalarPlaces = {};\nstatic constexpr bool kExchanges = {};\n",
             all, exchanges);
}

std::string HopperFunctor::text(bool merges, bool exchanges) {
  std::string text = bias_.functions() + scores() + fold_.visited(visible_, keys_);
  text += fold_.copy("copy_query", operands_.query) + fold_.copy("copy_key", operands_.key) +
          fold_.copy("copy_value", operands_.value) + functor_.aligned_outputs();
  if (exchanges) text += exchange();
  return functor_.text(text, merges, "PlainScores");
}

}  // namespace redfuser::codegen
