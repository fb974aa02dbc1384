#include "codegen/attention/hopper/element_text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "codegen/text/operation_text.h"
#include "ir/contraction.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

constexpr double kLog2E = 1.4426950408889634;

// Whether 32 bits suffice for an integer and fp32 is exact for it: differences of indices.
bool small_integer(ir::Expr e) {
  int64_t weight = 0;
  for (const auto& [monomial, coefficient] : to_polynomial(e)) {
    if (monomial.size() > 1) return false;
    const bool constant = monomial.empty();
    if (!constant && monomial[0]->op != ir::ExprOp::Axis && monomial[0]->op != ir::ExprOp::Symbol) {
      return false;
    }
    constexpr int64_t kConstant = int64_t{1} << 24, kCoefficient = 8;
    if (std::abs(coefficient) > (constant ? kConstant : kCoefficient)) return false;
    weight += constant ? 1 : std::abs(coefficient);
  }
  return weight <= 16;
}

bool compares(ir::ExprOp op) {
  return op == ir::ExprOp::Less || op == ir::ExprOp::LessEqual || op == ir::ExprOp::Equal;
}

}  // namespace

std::string float_text(double value) { return literal(value, DType::Float32); }

ElementText::ElementText(Emitter& emitter, const AttentionSpec& form, const ScoreSpec& score,
                         size_t phase, const std::vector<std::pair<ir::Expr, std::string>>& bias)
    : pool_(emitter.pool()),
      emitter_(emitter),
      form_(form),
      score_(score),
      phase_(phase),
      bias_(bias),
      raw_(phase == 0 && score.kept && score.kept_factors.rest != score.raw ? "raw" : "s") {}

bool ElementText::is_bias(ir::Expr e) const {
  return std::any_of(bias_.begin(), bias_.end(), [&](const auto& b) { return b.first == e; });
}

bool ElementText::ends_at(ir::Expr e) const {
  return is_bias(e) || (phase_ > 0 && e == score_.kept);
}

std::vector<ir::Expr> ElementText::roots() const {
  std::vector<ir::Expr> result = score_.lifts_of(phase_);
  if (phase_ == 0 && score_.kept) result.push_back(score_.kept_factors.rest);
  return result;
}

// Integers affine in the position within the tile need one 32-bit base per row.
void ElementText::bind_position(ir::Expr e, ir::Expr cast) {
  const auto affine = affine_in(pool_, e, form_.rows.cascade.stream);
  if (!affine || !affine->stride->is_constant() || !small_integer(e)) return;
  ir::Expr whole = cast ? cast : e;
  if (std::find(positions_.begin(), positions_.end(), whole) != positions_.end()) return;
  positions_.push_back(whole);
  const std::string base = as_int(emitter_.emit(affine->base)), name = emitter_.fresh("g");
  const int64_t stride = affine->stride->integer;
  if (cast) {
    emitter_.line(fmt::format("const float {} = static_cast<float>({} + {} * at.first);", name,
                              base, stride));
    emitter_.bind(cast, fmt::format("({} + static_cast<float>({} * at.offset))", name, stride));
  } else {
    emitter_.line(fmt::format("const int {} = {} + {} * at.first;", name, base, stride));
    emitter_.bind(e, fmt::format("({} + {} * at.offset)", name, stride));
  }
}

void ElementText::bind_positions() {
  ir::Expr key = form_.rows.cascade.stream;
  std::set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || e->op == ir::ExprOp::Read || !e->depends_on(key)) return;
    if (ends_at(e)) return;
    for (ir::Expr arg : e->args) {
      if (arg->dtype == DType::Int64 && arg->depends_on(key)) {
        if (compares(e->op)) bind_position(arg, nullptr);
        const bool single = value_type(e->dtype) == value_type(DType::Float32);
        if (e->op == ir::ExprOp::Cast && single) bind_position(arg, e);
      }
      go(arg);
    }
  };
  for (ir::Expr root : roots()) go(root);
}

// Sums of products are taken to be small; masks have the lowest number of their type.
bool ElementText::may_be_large(ir::Expr e) const {
  bool large = false;
  visit(e, [&](ir::Expr part) {
    if (part == score_.raw) return;
    if (part->op == ir::ExprOp::Constant && part->dtype != DType::Int64) {
      large |= std::isfinite(part->number) && std::abs(part->number) > 0x1p126;
    }
    large |= part->op == ir::ExprOp::Read && is_float(part->dtype) && part->dtype != DType::Float16;
  });
  return large;
}

// Exponentials and hyperbolic tangents of the elements; rescale references in exponents are scaled
// once per row.
std::vector<ElementText::Special> ElementText::specials() {
  std::vector<Special> found;
  std::set<ir::Expr> seen;
  const auto take = [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Exp && e->op != ir::ExprOp::Tanh) return;
    if (value_type(e->dtype) != value_type(DType::Float32) || !score_.element_level(e)) return;
    ir::Expr x = without_float_casts(e->args[0]), shift = nullptr;
    if (e->op == ir::ExprOp::Exp && x->op == ir::ExprOp::Sub && !score_.element_level(x->args[1])) {
      shift = x->args[1];
      x = without_float_casts(x->args[0]);
    }
    const Factored parts = x == score_.kept ? score_.kept_factors : factored(pool_, x);
    const double base = e->op == ir::ExprOp::Exp ? kLog2E : 2 * kLog2E;
    Special entry{e, parts.rest, float_text(parts.constant * base), ""};
    if (shift) {
      const std::string reference = emitter_.emit_as(shift, DType::Float32);
      const std::string name = emitter_.fresh("shift");
      if (may_be_large(score_.kept ? score_.kept : parts.rest)) {
        emitter_.line(
            fmt::format("const Exponent {} = exponent_of({}, {});", name, reference, entry.scale));
        entry.scale = name + ".scale";
        entry.shift = name + ".shift";
      } else {
        emitter_.line(
            fmt::format("const float {} = {} * {};", name, reference, float_text(-kLog2E)));
        entry.shift = name;
      }
    }
    found.push_back(entry);
  };
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || ends_at(e)) return;
    for (ir::Expr arg : e->args) go(arg);
    take(e);
  };
  for (ir::Expr lift : score_.lifts_of(phase_)) go(lift);
  return found;
}

void ElementText::bind_special(const Special& special) {
  const std::string name = emitter_.fresh("power");
  const std::string rest = emitter_.emit_as(special.rest, DType::Float32);
  const std::string text =
      special.expr->op == ir::ExprOp::Tanh ? fmt::format("tanh_scaled({}, {})", rest, special.scale)
      : special.shift.empty()
          ? fmt::format("ptx_exp2({} * {})", rest, special.scale)
          : fmt::format("ptx_exp2(fmaf({}, {}, {}))", rest, special.scale, special.shift);
  emitter_.line(fmt::format("const float {} = {};", name, text));
  emitter_.bind(special.expr, name);
}

// The contents of s: the raw score, after the first phase the kept value.
void ElementText::bind_score() {
  if (!score_.kept) return;
  const Factored& kept = score_.kept_factors;
  std::string text = raw_;
  if (phase_ == 0) {
    text = emitter_.emit_as(kept.rest, DType::Float32);
    if (text != raw_) emitter_.line(fmt::format("s = {};", text));
  }
  emitter_.bind(kept.rest, text);
  if (kept.rest != score_.kept) {
    emitter_.bind(score_.kept, fmt::format("({} * {})", text, float_text(kept.constant)));
  }
}

void ElementText::write(bool checks) {
  emitter_.bind(form_.rows.cascade.stream, "at.key");
  for (const auto& [e, text] : bias_) emitter_.bind(e, text);
  bind_positions();
  const std::vector<Special> found = specials();
  if (raw_ != "s") emitter_.line(fmt::format("const float {} = s;", raw_));
  if (phase_ == 0 || !score_.kept) emitter_.bind(score_.raw, raw_);
  // The kept value may contain special functions, and special functions may contain it.
  bool scored = false;
  for (const Special& special : found) {
    const bool late = phase_ > 0 || (score_.kept && special.rest == score_.kept_factors.rest);
    if (late && !scored) bind_score();
    scored |= late;
    bind_special(special);
  }
  if (!scored) bind_score();
  std::string weight;
  for (size_t k = score_.phases[phase_].begin; k < score_.phases[phase_].end; ++k) {
    const cascade::Accumulator& a = form_.rows.accumulators[k];
    ir::Expr lift = score_.rows.accumulators[k].lift;
    if (form_.is_value(k)) {
      weight = emitter_.emit_as(lift, DType::Float32);
      continue;
    }
    const std::string value =
        emitter_.emit_as(score_.reduces_kept(k) ? score_.kept_factors.rest : lift, a.dtype);
    emitter_.line(fmt::format("{0}part.a{1} = {2}::apply(part.a{1}, {3});",
                              checks ? "if (at.exists) " : "", k, combiner_of(a.reduction), value));
  }
  if (weight.empty()) return;
  emitter_.line(checks ? fmt::format("s = at.exists ? {} : 0.0f;", weight)
                       : fmt::format("s = {};", weight));
}

}  // namespace redfuser::codegen
