// Folds a tile of scores into the state of the warpgroup's rows, in registers.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "codegen/attention/hopper/text.h"
#include "codegen/text/loop.h"
#include "codegen/text/operation_text.h"
#include "ir/contraction.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

constexpr double kLog2E = 1.4426950408889634;

std::string float_text(double value) { return literal(value, DType::Float32); }

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

}  // namespace

void HopperText::open_row() {
  emitter_.open();
  emitter_.line(
      fmt::format("const int row = static_cast<int>(min_of(static_cast<long long>(own_row + h * "
                  "8), {} - 1));",
                  row_count_));
  emitter_.bind(form_.row, "row");
}

std::string HopperText::close_row() { return unrolled("h", 2, emitter_.close()); }

void HopperText::bind_references() {
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    leaves_.bind(ir::LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("w{}[h]", r),
                 DType::Float32);
  }
}

void HopperText::bind_old_state() {
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (is_value(k)) continue;
    leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k), fmt::format("a{}[h]", k),
                 DType::Float32);
  }
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    leaves_.bind(ir::LeafKind::OldResult, static_cast<int64_t>(r), fmt::format("r{}[h]", r),
                 DType::Float32);
  }
  bind_references();
  leaves_.bind(ir::LeafKind::Count, 0, old_count_, DType::Int64);
}

void HopperText::declare_state() {
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    if (is_value(k)) continue;
    const std::string identity = identity_of(a.reduction, a.dtype);
    emitter_.line(fmt::format("float a{0}[2] = {{{1}, {1}}}, b{0}[2];", k, identity));
  }
  emitter_.open();
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    if (is_value(k)) continue;
    leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k), identity_of(a.reduction, a.dtype),
                 a.dtype);
  }
  leaves_.bind(ir::LeafKind::Count, 0, "0ll", DType::Int64);
  std::string declarations, values;
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    declarations += fmt::format("float r{0}[2], w{0}[2];\n", r);
    const std::string value = emitter_.emit_as(rows_.references[r].value, DType::Float32);
    values += fmt::format("r{0}[0] = r{0}[1] = {1};\n", r, value);
  }
  emitter_.line(values);
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("{}{{\n{}}}", declarations, text));
}

std::string HopperText::fold_tile() {
  const bool even = rows_.length()->is_constant() && rows_.length()->integer % config_.keys == 0;
  if (even && !scores_.by_key && by_tile_.full->is_constant(1)) {
    return fmt::format("{{\n{}}}", fold_scores(whole_, false));
  }
  const std::string masked = fold_scores(masked_, !even);
  emitter_.open();
  emitter_.bind(ranges_.key.first, "first");
  emitter_.bind(ranges_.key.last, fmt::format("(first + {})", config_.keys - 1));
  if (!ranges_.rows.empty()) {
    emitter_.bind(ranges_.rows[0].first, "group_row");
    emitter_.bind(ranges_.rows[0].last, "last_group_row");
  }
  const std::string full = emitter_.emit(by_tile_.full);
  const std::string inside =
      even ? std::string("true") : fmt::format("first + {} <= {}", config_.keys, keys_);
  const std::string test =
      emitter_.close() + "whole = " + all_of({inside, full, scores_.by_key ? "clear" : "true"});
  return fmt::format("bool whole;\n{{\n{};\n}}\nif (whole) {{\n{}}} else {{\n{}}}", test,
                     fold_scores(whole_, false), masked);
}

std::string HopperText::fold_scores(const ScoreSpec& score, bool tail) {
  emitter_.open();
  emitter_.line(tail ? fmt::format("const int valid = static_cast<int>(min_of({} - first, {}ll));",
                                   keys_, config_.keys)
                     : fmt::format("const int valid = {};", config_.keys));
  if (score.tanh_scale != 0) {
    emitter_.line(fmt::format("tanh_tile(s, {});", float_text(score.tanh_scale)));
  }
  ready_.clear();
  make_references(0);
  for (size_t i = 0; i < score.phases.size(); ++i) fold_phase(score, i, tail);
  return emitter_.close();
}

void HopperText::fold_phase(const ScoreSpec& score, size_t phase, bool tail) {
  const Phase& range = score.phases[phase];
  open_row();
  bind_references();
  for (size_t k = range.begin; k < range.end; ++k) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    const std::string identity = identity_of(a.reduction, a.dtype);
    if (!is_value(k)) emitter_.line(fmt::format("float tile{0}[2] = {{{1}, {1}}};", k, identity));
  }
  fold_element(score, phase, tail);
  for (size_t k = range.begin; k < range.end; ++k) {
    if (!is_value(k)) update_state(score, k, tile_reduction(score, k));
  }
  emitter_.line(close_row());
  make_references(range.end);
}

// Integers affine in the position within the tile need one 32-bit base per row.
HopperText::Bindings HopperText::positions(const ScoreSpec& score, size_t phase) {
  std::set<ir::Expr> seen, done;
  Bindings found;
  auto take = [&](ir::Expr e, ir::Expr cast) {
    auto affine = affine_in(pool_, e, rows_.cascade.stream);
    if (!affine || !affine->stride->is_constant() || !small_integer(e)) return;
    if (!done.insert(cast ? cast : e).second) return;
    const std::string base = emitter_.emit(affine->base);
    const std::string name = emitter_.fresh("g");
    const int64_t stride = affine->stride->integer;
    const std::string start = fmt::format("{} + {} * (first + pair)", as_int(base), stride);
    if (cast) {
      emitter_.line(fmt::format("const float {} = static_cast<float>({});", name, start));
      found.emplace_back(cast,
                         fmt::format("({} + static_cast<float>({} * (n * 8 + e)))", name, stride));
    } else {
      emitter_.line(fmt::format("const int {} = {};", name, start));
      found.emplace_back(e, fmt::format("({} + {} * (n * 8 + e))", name, stride));
    }
  };
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || e->op == ir::ExprOp::Read || !e->depends_on(rows_.cascade.stream))
      return;
    if (is_term(e)) return;
    if (phase > 0 && e == score.kept) return;
    const bool compares =
        e->op == ir::ExprOp::Less || e->op == ir::ExprOp::LessEqual || e->op == ir::ExprOp::Equal;
    for (ir::Expr arg : e->args) {
      if (arg->dtype == DType::Int64 && arg->depends_on(rows_.cascade.stream)) {
        if (compares) take(arg, nullptr);
        if (e->op == ir::ExprOp::Cast && value_type(e->dtype) == value_type(DType::Float32)) {
          take(arg, e);
        }
      }
      go(arg);
    }
  };
  for (ir::Expr lift : score.lifts_of(phase)) go(lift);
  if (phase == 0 && score.kept) go(score.kept_factors.rest);
  return found;
}

// Exponentials and hyperbolic tangents of the elements; rescale references in exponents are scaled
// once per row.
std::vector<HopperText::Special> HopperText::specials(const ScoreSpec& score, size_t phase) {
  std::vector<Special> found;
  std::set<ir::Expr> seen;
  auto take = [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Exp && e->op != ir::ExprOp::Tanh) return;
    if (value_type(e->dtype) != value_type(DType::Float32)) return;
    if (!score.element_level(e) || !seen.insert(e).second) return;
    ir::Expr x = without_float_casts(e->args[0]), shift = nullptr;
    if (e->op == ir::ExprOp::Exp && x->op == ir::ExprOp::Sub && !score.element_level(x->args[1])) {
      shift = x->args[1];
      x = without_float_casts(x->args[0]);
    }
    const Factored parts = x == score.kept ? score.kept_factors : factored(pool_, x);
    const double base = e->op == ir::ExprOp::Exp ? kLog2E : 2 * kLog2E;
    Special entry{e, parts.rest, float_text(parts.constant * base), ""};
    if (shift) {
      entry.shift = emitter_.fresh("shift");
      emitter_.line(fmt::format("const float {} = {} * {};", entry.shift,
                                emitter_.emit_as(shift, DType::Float32), float_text(-kLog2E)));
    }
    found.push_back(entry);
  };
  std::set<ir::Expr> passed;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!passed.insert(e).second || is_term(e) || (phase > 0 && e == score.kept)) return;
    for (ir::Expr arg : e->args) go(arg);
    take(e);
  };
  for (ir::Expr lift : score.lifts_of(phase)) go(lift);
  return found;
}

void HopperText::bind_special(const Special& special) {
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

void HopperText::place_element(bool tail) {
  emitter_.line("const int x = h * 2 + e;");
  if (tail) {
    emitter_.line("const int offset = n * 8 + pair + e;");
    emitter_.line(fmt::format(
        "const int at = static_cast<int>(min_of(static_cast<long long>(first + offset), {} - 1));",
        keys_));
  } else {
    emitter_.line("const int at = first + n * 8 + pair + e;");
  }
  emitter_.bind(rows_.cascade.stream, "at");
}

// The contents of s: the raw score, after the first phase the kept value.
void HopperText::bind_score(const ScoreSpec& score, size_t phase) {
  if (!score.kept) return;
  const Factored& kept = score.kept_factors;
  std::string text = "raw";
  if (phase == 0) {
    text = emitter_.emit_as(kept.rest, DType::Float32);
    if (text != "raw") emitter_.line(fmt::format("s[n][x] = {};", text));
  }
  emitter_.bind(kept.rest, text);
  if (kept.rest != score.kept) {
    emitter_.bind(score.kept, fmt::format("({} * {})", text, float_text(kept.constant)));
  }
}

void HopperText::fold_element(const ScoreSpec& score, size_t phase, bool tail) {
  const Phase& range = score.phases[phase];
  const Bindings places = positions(score, phase);
  const std::vector<Special> found = specials(score, phase);
  emitter_.open();
  open_terms(score, phase);
  emitter_.open();
  place_element(tail);
  bind_terms();
  for (const auto& [e, text] : places) emitter_.bind(e, text);
  emitter_.line("const float raw = s[n][x];");
  if (phase == 0 || !score.kept) emitter_.bind(score.raw, "raw");
  // The kept value may contain special functions, and special functions may contain it.
  bool scored = false;
  for (const Special& special : found) {
    const bool late = phase > 0 || (score.kept && special.rest == score.kept_factors.rest);
    if (late && !scored) bind_score(score, phase);
    scored |= late;
    bind_special(special);
  }
  if (!scored) bind_score(score, phase);
  std::string weight;
  for (size_t k = range.begin; k < range.end; ++k) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    ir::Expr lift = score.rows.accumulators[k].lift;
    if (is_value(k)) {
      weight = emitter_.emit_as(lift, DType::Float32);
      continue;
    }
    const std::string value =
        emitter_.emit_as(score.reduces_kept(k) ? score.kept_factors.rest : lift, a.dtype);
    emitter_.line(fmt::format("{0}tile{1}[e] = {2}::apply(tile{1}[e], {3});",
                              tail ? "if (offset < valid) " : "", k, combiner_of(a.reduction),
                              value));
  }
  if (!weight.empty()) {
    emitter_.line(tail ? fmt::format("s[n][x] = offset < valid ? {} : 0.0f;", weight)
                       : fmt::format("s[n][x] = {};", weight));
  }
  const std::string element = emitter_.close();
  emitter_.line(unrolled("e", 2, element));
  const std::string keys = emitter_.close();
  emitter_.line(unrolled("n", config_.keys / 8, keys));
}

std::string HopperText::tile_reduction(const ScoreSpec& score, size_t k) const {
  const std::string_view op = combiner_of(rows_.accumulators[k].reduction);
  std::string tile = fmt::format("{0}::apply(tile{1}[0], tile{1}[1])", op, k);
  if (!score.per_lane[k]) tile = fmt::format("quad_reduce<{}>({})", op, tile);
  return tile;
}

void HopperText::update_state(const ScoreSpec& score, size_t k, const std::string& reduction) {
  const cascade::Accumulator& a = rows_.accumulators[k];
  const std::string_view op = combiner_of(a.reduction);
  emitter_.open();
  bind_old_state();
  std::string tile = reduction;
  if (score.reduces_kept(k) && score.kept_factors.constant != 1) {
    tile = fmt::format("{} * {}", tile, float_text(score.kept_factors.constant));
  }
  const std::string old =
      a.transport ? emitter_.emit_as(a.transport, a.dtype) : fmt::format("a{}[h]", k);
  emitter_.line(fmt::format("b{}[h] = {}::apply({}, {});", k, op, old, tile));
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("{{\n{}}}", text));
}

void HopperText::make_references(size_t done) {
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    const cascade::Reference& reference = rows_.references[r];
    if (static_cast<size_t>(reference.ready_after) > done || !ready_.insert(r).second) continue;
    emitter_.open();
    for (size_t k = 0; k < done; ++k) {
      if (is_value(k)) continue;
      leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k), fmt::format("b{}[h]", k),
                   DType::Float32);
    }
    leaves_.bind(ir::LeafKind::Count, 0, new_count_, DType::Int64);
    emitter_.line(
        fmt::format("w{}[h] = {};", r, emitter_.emit_as(reference.value, DType::Float32)));
    const std::string text = emitter_.close();
    emitter_.line(unrolled("h", 2, text));
  }
}

std::string HopperText::move_values() {
  const cascade::Accumulator& a = rows_.accumulators[form_.value_accumulator];
  if (!a.transport) return "";
  emitter_.open();
  open_row();
  bind_old_state();
  emitter_.open();
  emitter_.line("const int x = h * 2 + e;");
  leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator), "o[n][x]",
               DType::Float32);
  emitter_.line(fmt::format("o[n][x] = {};", emitter_.emit_as(a.transport, DType::Float32)));
  const std::string element = emitter_.close();
  emitter_.line(unrolled("n", columns_ / 8, unrolled("e", 2, element) + "\n"));
  emitter_.line(close_row());
  const std::string text = emitter_.close();
  // ρ(d, d) = 1: no rescaling unless a reference of the warp's rows changed.
  std::string same;
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    same += fmt::format("{0}r{1}[0] == w{1}[0] && r{1}[1] == w{1}[1]", r > 0 ? " && " : "", r);
  }
  if (same.empty()) return text;
  return fmt::format("if (!__all_sync(0xffffffffu, {})) {{\n{}}}", same, text);
}

std::string HopperText::adopt_state() {
  std::string moves;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!is_value(k)) moves += fmt::format("a{0}[h] = b{0}[h];\n", k);
  }
  for (size_t r = 0; r < rows_.references.size(); ++r)
    moves += fmt::format("r{0}[h] = w{0}[h];\n", r);
  return unrolled("h", 2, moves);
}

}  // namespace redfuser::codegen
