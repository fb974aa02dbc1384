#include "codegen/attention/hopper/hopper_functor.h"

#include <fmt/format.h>

#include "codegen/attention/hopper/element_text.h"
#include "codegen/functor/state_functor.h"
#include "codegen/text/indent.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

const StateText::ReferenceNames kOfStep = {kReferencesBefore, kReferencesAfter};

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
  return fmt::format(
      "{}bool whole(const Row& row, int first, int first_row, int last_row) const {}", kInline,
      braced(e.close()));
}

std::string HopperFunctor::map(bool whole) const {
  const double scale = score(whole).tanh_scale;
  return fmt::format(
      "template <int N>\n{}void map({}, float (&s)[N][4]) const {}", kInline, tag(whole),
      braced(scale == 0 ? std::string() : fmt::format("tanh_tile(s, {});\n", float_text(scale))));
}

std::string HopperFunctor::lift(bool whole, size_t phase) {
  Emitter e = emitter();
  const ScoreSpec& spec = score(whole);
  StateText state(e, spec.rows, kOfStep, form_.value_accumulator);
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    const cascade::Reference& reference = rows_.references[r];
    if (static_cast<size_t>(reference.ready_after) > phases_[phase].begin) continue;
    state.bind(ir::LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("to.r{}", r),
               reference.value->dtype);
  }
  const auto bias = bias_.values();
  e.open();
  ElementText(e, form_, spec, phase, bias).write(!whole && !is_even());
  const std::string element = e.close();
  return fmt::format(
      "{}void lift({}, Phase<{}>, State& part, float& s, const Pair& pair, const State& to, const "
      "Row& row, const KeyPlace& at) const {}",
      kInline, tag(whole), phase, braced(e.close() + element));
}

std::string HopperFunctor::reduced(bool whole, size_t phase) const {
  const ScoreSpec& spec = score(whole);
  std::string text = "State part;\n";
  for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k) {
    if (form_.is_value(k)) continue;
    const std::string_view op = combiner_of(rows_.accumulators[k].reduction);
    std::string value = fmt::format("{0}::apply(parts[0].a{1}, parts[1].a{1})", op, k);
    if (!spec.per_lane[k]) value = fmt::format("quad_reduce<{}>({})", op, value);
    const double scale = spec.reduces_kept(k) ? spec.kept_factors.constant : 1;
    if (scale != 1) value += " * " + float_text(scale);
    text += fmt::format("part.a{} = {};\n", k, value);
  }
  return fmt::format("{}State reduced({}, Phase<{}>, const State (&parts)[2]) const {}", kInline,
                     tag(whole), phase, braced(text + "return part;\n"));
}

std::string HopperFunctor::join_lanes() const {
  std::string text;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (form_.is_value(k) || !scores_.masked.per_lane[k]) continue;
    text += fmt::format("s.a{0} = quad_reduce<{1}>(s.a{0});\n", k,
                        combiner_of(rows_.accumulators[k].reduction));
  }
  return fmt::format("static {}void join_lanes(State& s) {}", kInline, braced(text));
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
    text += map(all);
    for (size_t phase = 0; phase < phases_.size(); ++phase) {
      text += bias_.load_bias(score(all), phase, tag(all)) + lift(all, phase) + reduced(all, phase);
    }
  }
  for (size_t phase = 0; phase < phases_.size(); ++phase) {
    text += fold_.settle(phase, phases_[phase], false);
  }
  return text + join_lanes() + fold_.same();
}

// Scalars of a phase, and those of which lanes have parts until the end, as floats `stride` apart.
std::string HopperFunctor::exchange() const {
  const size_t scalars = rows_.accumulators.size();
  const auto functions = [&](const std::string& which, const std::vector<size_t>& accumulators) {
    std::string put, join;
    for (const size_t k : accumulators) {
      put += fmt::format("to[{} * stride] = part.a{};\n", k, k);
      join += fmt::format("part.a{0} = {1}::apply(left[{0} * stride], right[{0} * stride]);\n", k,
                          combiner_of(rows_.accumulators[k].reduction));
    }
    return fmt::format(
        "static __device__ constexpr bool exchanges({0}) {{ return {1}; }}\n"
        "static {2}void put({0}, float* to, int stride, const State& part) {3}"
        "static {2}void join({0}, State& part, const float* left, const float* right, int stride) "
        "{4}",
        which, !accumulators.empty(), kInline, braced(put), braced(join));
  };
  std::string text;
  std::vector<size_t> last;
  bool exchanges = false;
  for (size_t phase = 0; phase < phases_.size(); ++phase) {
    std::vector<size_t> shared;
    for (size_t k = phases_[phase].begin; k < phases_[phase].end; ++k) {
      if (!form_.is_value(k) && !scores_.masked.per_lane[k]) shared.push_back(k);
    }
    exchanges |= !shared.empty();
    text += functions(fmt::format("Phase<{}>", phase), shared);
  }
  std::string put, get;
  for (size_t k = 0; k < scalars; ++k) {
    if (form_.is_value(k)) continue;
    put += fmt::format("to[{0} * stride] = s.a{0};\n", k);
    get += fmt::format("s.a{0} = from[{0} * stride];\n", k);
    if (scores_.masked.per_lane[k]) last.push_back(k);
  }
  std::string put_references, get_references;
  for (size_t r : used_references(rows_)) {
    put_references += fmt::format("to[{0} * stride] = s.r{0};\n", r);
    get_references += fmt::format("s.r{0} = from[{0} * stride];\n", r);
  }
  return text + functions("Rest", last) +
         fmt::format(
             "static constexpr int kScalarPlaces = {0};\nstatic constexpr bool kExchanges = {6};\n"
             "static {1}void put_scalars(float* to, int stride, const State& s) {2}"
             "static {1}void get_scalars(State& s, const float* from, int stride) {3}"
             "static {1}void put_references(float* to, int stride, const State& s) {4}"
             "static {1}void get_references(State& s, const float* from, int stride) {5}",
             scalars, kInline, braced(put), braced(get), braced(put_references),
             braced(get_references), exchanges);
}

std::string HopperFunctor::text(bool merges, bool exchanges) {
  std::string text = bias_.functions() + scores() + fold_.visited(visible_, keys_);
  text += fold_.copy("copy_query", operands_.query) + fold_.copy("copy_key", operands_.key) +
          fold_.copy("copy_value", operands_.value) + functor_.aligned_outputs();
  if (exchanges) text += exchange();
  return functor_.text(text, merges);
}

}  // namespace redfuser::codegen
