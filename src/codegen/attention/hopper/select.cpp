#include "codegen/attention/hopper/select.h"

#include <algorithm>
#include <functional>

#include "codegen/attention/element_work.h"
#include "codegen/attention/hopper/cost.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kLargestSize = 256;

// Keys covered by tiles of `keys`, relative to `length`.
double waste(ir::Expr length, int64_t keys) {
  if (!length->is_constant() || length->integer <= 0) return 0;
  const int64_t covered = (length->integer + keys - 1) / keys * keys;
  return static_cast<double>(covered) / static_cast<double>(length->integer);
}

// Lifts of visible elements; of all elements if `visible` is null.
std::vector<ir::Expr> lifts_of(ir::ExprPool& pool, const AttentionSpec& form, ir::Expr visible) {
  std::vector<ir::Expr> result;
  for (size_t k = 0; k < form.rows.accumulators.size(); ++k) {
    ir::Expr lift = form.lift_of(k);
    result.push_back(visible ? where_visible(pool, visible, lift) : lift);
  }
  return result;
}

// Separates the conjuncts that read elements for every key.
void split_visible(ir::ExprPool& pool, const AttentionSpec& form, HopperScores& scores) {
  scores.by_tile = pool.boolean(true);
  scores.by_key = nullptr;
  auto both = [&](ir::Expr a, ir::Expr b) { return a ? pool.make(ir::ExprOp::And, {a, b}) : b; };
  std::function<void(ir::Expr, bool)> split = [&](ir::Expr e, bool wanted) {
    if (e->op == ir::ExprOp::Not) return split(e->args[0], !wanted);
    if (e->op == (wanted ? ir::ExprOp::And : ir::ExprOp::Or)) {
      for (ir::Expr arg : e->args) split(arg, wanted);
      return;
    }
    const bool read =
        e->has_read && e->depends_on(form.rows.cascade.stream) && !e->depends_on(form.row);
    ir::Expr& part = read ? scores.by_key : scores.by_tile;
    part = both(part, wanted ? e : pool.make(ir::ExprOp::Not, {e}));
  };
  split(scores.mask.visible, true);
}

}  // namespace

HopperScores hopper_scores(ir::ExprPool& pool, const AttentionSpec& form) {
  HopperScores scores{mask_condition(pool, form)};
  split_visible(pool, form, scores);
  scores.masked = score_spec(pool, form, lifts_of(pool, form, nullptr));
  scores.whole = score_spec(pool, form, lifts_of(pool, form, scores.mask.visible));
  BiasTiles found = bias_tiles(pool, form, {&scores.masked, &scores.whole});
  scores.terms = std::move(found.terms);
  scores.strips = std::move(found.strips);
  return scores;
}

std::optional<HopperOperands> hopper_operands(StepBuilder& builder, const AttentionSpec& form) {
  if (form.depth->extent()->integer > kLargestSize || form.column->extent()->integer > kLargestSize)
    return std::nullopt;
  return tma_operands(builder, form);
}

std::optional<HopperOperands> tma_operands(StepBuilder& builder, const AttentionSpec& form) {
  constexpr int kArchitecture = 90;
  const Target& target = builder.target;
  if (target.architecture != kArchitecture || target.portable || !form.row) return std::nullopt;
  const DType dtype = form.query->dtype;
  if (size_of(dtype) != 2 || form.key->dtype != dtype || form.value->dtype != dtype) {
    return std::nullopt;
  }
  const std::vector<Phase> phases = phases_of(form.rows);
  if (form.value_accumulator < phases.back().begin) return std::nullopt;
  auto query = tma_operand(builder, form.query, form.depth, form.row);
  auto key = tma_operand(builder, form.key, form.depth, form.rows.cascade.stream);
  auto value = tma_operand(builder, form.value, form.column, form.rows.cascade.stream);
  if (!query || !key || !value) return std::nullopt;
  return HopperOperands{*query, *key, *value};
}

int hopper_term_bytes(const HopperScores& scores, const HopperConfig& config) {
  int bytes = 0;
  for (const BiasTile& term : scores.terms) {
    bytes += 2 * term.places(Warpgroup::kRows, config.keys) * term.bytes();
  }
  return bytes;
}

int hopper_strip_bytes(const HopperScores& scores, const HopperConfig& config) {
  int bytes = 0;
  for (const ScoreStrip& strip : scores.strips)
    bytes += Warpgroup::kRows * strip.pitch(config.keys);
  return config.strips ? bytes : 0;
}

int hopper_shared_bytes(const AttentionSpec& form, const HopperScores& scores,
                        const HopperConfig& config) {
  const int64_t depth = form.depth->extent()->integer, columns = form.column->extent()->integer;
  return TmaTile::kAlignment + HopperConfig::kBarrierBytes +
         config.groups * (hopper_term_bytes(scores, config) + hopper_strip_bytes(scores, config)) +
         config.queries * TmaTile{config.groups * Warpgroup::kRows, depth}.bytes() +
         config.stages *
             (TmaTile{config.keys, depth}.bytes() + TmaTile{config.keys, columns}.bytes());
}

HopperConfig hopper_config(const StepBuilder& builder, const AttentionSpec& form,
                           const HopperScores& scores) {
  constexpr int kMaxStages = 4, kMinKeys = 64, kLargestWithStrips = 128;
  const int64_t size = std::max(form.depth->extent()->integer, form.column->extent()->integer);
  const bool masked = !scores.mask.visible->is_constant();
  HopperConfig config;
  ir::Expr length = form.rows.length();
  const bool even = length->is_constant() && length->integer % config.keys == 0;
  if (size <= 64) {
    // The registers of three warpgroups do not hold the code of masks or strips as well.
    config.groups = masked || !even || !scores.strips.empty() ? 2 : 3;
  } else if (size <= 128) {
    // wgmma reads Q from shared memory less often for wider tiles.
    constexpr int kWide = 144;
    constexpr double kGain = 1.04;
    if (!masked && length->is_constant() &&
        waste(length, kWide) < kGain * waste(length, config.keys) && length->integer >= 8 * kWide) {
      config.keys = kWide;
    }
  } else {
    config.keys = size <= 192 ? 112 : 64;
  }
  config.groups = choose_warpgroups(builder, form, scores, config.keys, config.groups);
  auto fits = [&](HopperConfig larger) {
    if (hopper_shared_bytes(form, scores, larger) > builder.target.shared_bytes) return false;
    config = larger;
    return true;
  };
  HopperConfig larger = config;
  larger.strips = size <= kLargestWithStrips && !scores.strips.empty();
  while (larger.strips && !fits(larger) && larger.keys > kMinKeys) larger.keys -= 16;
  larger = config;
  larger.queries = hopper_queries(builder, form, scores, config.groups);
  fits(larger);
  larger = config;
  while (++larger.stages <= kMaxStages && fits(larger)) {
  }
  return config;
}

namespace {

// Whether a thread's registers hold its scores, packed weights and output sums; the others are for
// addresses, states and masks, and for what each score is made of beside the softmax.
bool fits_registers(const AttentionSpec& form, const HopperScores& scores, int groups, int keys) {
  const int columns = padded_size(form.column->extent()->integer);
  const bool plain = scores.mask.visible->is_constant() && !scores.has_terms();
  const bool bare = element_work(form).scalars <= kSoftmaxWork.scalars;
  const int room = groups > 2 ? (plain && bare ? 128 : 104) : plain && !bare ? 136 : 168;
  return keys / 2 + keys / 4 + columns / 2 <= room;
}

}  // namespace

std::vector<HopperConfig> hopper_configs(const Target& target, const AttentionSpec& form,
                                         const HopperScores& scores, int groups, int keys) {
  constexpr int kMaxStages = 4;
  const auto fits = [&](const HopperConfig& config) {
    return hopper_shared_bytes(form, scores, config) <= target.shared_bytes;
  };
  std::vector<HopperConfig> configs;
  if (!fits_registers(form, scores, groups, keys)) return configs;
  for (const int queries : {2, 1}) {
    HopperConfig config;
    config.groups = groups;
    config.keys = keys;
    config.queries = queries;
    config.strips = !scores.strips.empty();
    if (config.strips && !fits(config)) config.strips = false;
    if (!fits(config)) continue;
    while (config.stages < kMaxStages) {
      HopperConfig deeper = config;
      ++deeper.stages;
      if (!fits(deeper)) break;
      config = deeper;
    }
    const bool shallow = !configs.empty() && config.stages <= configs.back().stages;
    if (!shallow) configs.push_back(config);
  }
  return configs;
}

}  // namespace redfuser::codegen
