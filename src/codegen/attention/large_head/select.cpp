#include "codegen/attention/large_head/select.h"

#include <algorithm>

#include "codegen/attention/attention_functor.h"
#include "codegen/attention/hopper/select.h"

namespace redfuser::codegen {
namespace {

int slabs_of(ir::Expr extent) { return TmaTile::slabs_of(extent->integer); }

bool same(const BufferRef& a, const BufferRef& b) {
  return a.value == b.value && a.scratch == b.scratch;
}

// The slab of the keys where the values begin, if values are columns of the keys.
std::optional<int> shared_slab(ir::ExprPool& pool, const AttentionSpec& form,
                               const HopperOperands& operands) {
  const TmaView &key = operands.key.view, &value = operands.value.view;
  if (!same(key.buffer, value.buffer) || key.strides != value.strides ||
      operands.key.coordinates != operands.value.coordinates) {
    return std::nullopt;
  }
  ir::Expr distance = pool.sub(value.offset, key.offset);
  if (!distance->is_constant() || distance->integer < 0 ||
      distance->integer % TmaTile::kSlabColumns != 0 ||
      distance->integer + form.column->extent()->integer > form.depth->extent()->integer) {
    return std::nullopt;
  }
  return static_cast<int>(distance->integer / TmaTile::kSlabColumns);
}

}  // namespace

int wide_columns(const AttentionSpec& form) {
  return (slabs_of(form.column->extent()) + 1) / 2 * TmaTile::kSlabColumns;
}

int wide_parts(const AttentionSpec& form, const LargeHeadConfig& config) {
  return (slabs_of(form.depth->extent()) + config.part_slabs - 1) / config.part_slabs;
}

LargeHeadLayout large_head_layout(const AttentionSpec& form, const LargeHeadConfig& config) {
  constexpr int kRingBytes = 16;  // the barriers of a stage
  constexpr int kPart =
      2 * LargeHeadLayout::kRows * 4;  // exchanged by the warpgroups: a float per row and warpgroup
  const int64_t depth = form.depth->extent()->integer, columns = form.column->extent()->integer;
  LargeHeadLayout layout{};
  layout.query = TmaTile{LargeHeadLayout::kRows, depth}.bytes();
  layout.key = TmaTile{config.keys, depth}.bytes();
  layout.value = config.value_stages > 0 ? TmaTile{config.keys, columns}.bytes() : 0;
  layout.keys = layout.query;
  layout.values = layout.keys + config.key_stages * layout.key;
  layout.weights = layout.values + config.value_stages * layout.value;
  layout.reduced = layout.weights + TmaTile{LargeHeadLayout::kRows}.slab_bytes();
  layout.barriers = layout.reduced + static_cast<int>(form.rows.accumulators.size()) * kPart;
  layout.heads = 2 * wide_columns(form) * LargeHeadLayout::kRows * 4;
  const int rings = wide_parts(form, config) * (1 + config.key_stages) + config.value_stages;
  layout.bytes = layout.barriers + rings * kRingBytes + TmaTile::kAlignment;
  return layout;
}

std::optional<LargeHeadConfig> large_head_config(StepBuilder& builder, const AttentionSpec& form,
                                                 const HopperOperands& operands) {
  constexpr int kMaxStages = 4, kMaxGroupColumns = 256;
  if (wide_columns(form) > kMaxGroupColumns || slabs_of(form.column->extent()) < 2) {
    return std::nullopt;
  }
  const auto slab = shared_slab(builder.pool(), form, operands);
  auto fits = [&](const LargeHeadConfig& config) {
    return large_head_layout(form, config).bytes <= builder.target.shared_bytes;
  };
  for (const int keys : {64, 32}) {
    // A K tile is loaded during the product with V, and a V tile during the product with K.
    LargeHeadConfig config{keys, slab ? 2 : 1, slab ? 0 : 1, slab.value_or(0)};
    if (!fits(config)) continue;
    for (LargeHeadConfig larger = config; larger.key_stages < kMaxStages;) {
      ++larger.key_stages;
      if (!slab) ++larger.value_stages;
      if (!fits(larger)) break;
      config = larger;
    }
    return config;
  }
  return std::nullopt;
}

HopperScores wide_scores(ir::ExprPool& pool, const AttentionSpec& form) {
  HopperScores scores = hopper_scores(pool, form);
  scores.terms.clear();
  scores.strips.clear();
  if (scores.by_key) scores.by_tile = pool.boolean(false);
  scores.by_key = nullptr;
  return scores;
}

int wide_scorers(ir::ExprPool& pool, const AttentionSpec& form, const LargeHeadConfig& config) {
  if (config.value_stages > 0) return 2;
  const FlatStreaming& rows = form.rows;
  const HopperScores scores = hopper_scores(pool, form);
  if (scores.has_terms() || !scores.strips.empty() || scores.masked.tanh_scale != 0) return 2;
  if (scores.mask.visible && !scores.mask.visible->is_constant()) return 2;
  if (rows.references.size() > rows.accumulators.size()) return 2;
  int scorers = 1;
  if (ir::Expr transport = rows.accumulators[form.value_accumulator].transport) {
    visit(transport, [&](ir::Expr e) {
      const bool state = e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::State;
      if (state && e->integer != static_cast<int64_t>(form.value_accumulator)) scorers = 2;
    });
  }
  return scorers;
}

int wide_cluster(StepBuilder& builder, const AttentionSpec& form, const LargeHeadConfig& config) {
  ir::ExprPool& pool = builder.pool();
  ir::Expr groups = pool.mul(ceil_div(pool, form.row->extent(), LargeHeadLayout::kRows),
                             product_of(pool, extents_of(pool, form.others)));
  const LargeHeadLayout layout = large_head_layout(form, config);
  const int head_bytes = LargeHeadLayout::kRows * state_head(form) * 4;
  if (!groups->is_constant() || layout.heads + head_bytes > layout.weights) return 1;
  const int64_t blocks = builder.target.multiprocessors / std::max<int64_t>(groups->integer, 1);
  ir::Expr length = form.rows.length();
  return blocks == 2 && (!length->is_constant() || length->integer > config.keys) ? 2 : 1;
}

Segments wide_segments(StepBuilder& builder, const AttentionSpec& form,
                       const LargeHeadConfig& config) {
  // A segment's state has as many bytes as a few K tiles.
  constexpr int64_t kMinTiles = 2;
  ir::ExprPool& pool = builder.pool();
  ir::Expr one = pool.integer(1), processors = pool.integer(builder.target.multiprocessors);
  auto at_least_one = [&](ir::Expr e) { return pool.make(ir::ExprOp::Max, {e, one}); };
  Segments result;
  result.row_tiles = ceil_div(pool, form.row->extent(), LargeHeadLayout::kRows);
  result.groups = pool.mul(result.row_tiles, product_of(pool, extents_of(pool, form.others)));
  result.count = one;
  if (config.cluster == 1) {
    ir::Expr by_groups = at_least_one(pool.floordiv(processors, at_least_one(result.groups)));
    ir::Expr by_keys = at_least_one(ceil_div(pool, form.rows.length(), kMinTiles * config.keys));
    result.count = pool.make(ir::ExprOp::Min, {pool.make(ir::ExprOp::Min, {by_groups, by_keys}),
                                               pool.integer(Segments::kMax)});
  }
  ir::Expr states = pool.select(pool.make(ir::ExprOp::Equal, {result.count, one}), pool.integer(0),
                                pool.mul(result.groups, result.count));
  const int64_t state = int64_t{LargeHeadLayout::kRows} * state_block(form, 1);
  result.states = builder.add_scratch(DType::Float32, pool.mul(states, pool.integer(state)));
  return result;
}

}  // namespace redfuser::codegen
