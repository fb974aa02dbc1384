#include "codegen/attention/mma/split_kv_select.h"

#include <algorithm>
#include <bit>

#include "codegen/attention/attention_functor.h"
#include "codegen/attention/mma/mma_products.h"

namespace redfuser::codegen {
SplitKvLayout split_kv_layout(const Target& target, const AttentionSpec& form,
                              const SplitKvConfig& config) {
  const MmaProducts products(target, form);
  SplitKvLayout layout{};
  const MmaOperand &key = products.key, &value = products.value;
  layout.query = config.boxed ? 0 : products.query.bytes(kWarpRows);
  layout.key = config.boxed ? TmaTile{config.keys, key.columns}.bytes() : key.bytes(config.keys);
  layout.value =
      config.boxed ? TmaTile{config.keys, value.columns}.bytes() : value.bytes(config.keys);
  layout.staged = products.staged_bytes(config.keys);
  const int unit = config.boxed ? TmaTile::kAlignment : 16;
  layout.rings = (layout.query + unit - 1) / unit * unit;
  const int ring = config.stages * (layout.key + layout.value) + layout.staged;
  layout.barriers = layout.rings + config.warps * ring;
  layout.bytes = layout.barriers;
  if (config.boxed) layout.bytes += config.warps * config.stages * 8 + TmaTile::kAlignment;
  return layout;
}

int split_shared_bytes(const Target& target, const AttentionSpec& form,
                       const SplitKvConfig& config) {
  const int states = config.warps * state_block(form, split_rows(form)) * 4;
  return std::max(split_kv_layout(target, form, config).bytes, states + TmaTile::kAlignment);
}

bool split_fits_registers(const Target& target, const AttentionSpec& form, int keys) {
  constexpr int kMostColumns = 64, kFewKeys = 16;
  const MmaProducts products(target, form);
  const int columns = keys <= kFewKeys ? kLargestPortable : kMostColumns;
  return products.value.columns <= columns || !products.needs_parts();
}

// Tries configurations from the most to the fewest bytes in flight. With TMA kEnough bytes saturate
// the memory, and more lengthen the start and the end of a block.
std::optional<SplitKvConfig> split_kv_config(const Target& target, const AttentionSpec& form,
                                             bool boxed) {
  constexpr int kMinStages = 2, kEnough = 136 * 1024;
  for (const int warps : {4, 2, 1}) {
    for (const int keys : {32, 16}) {
      if (!split_fits_registers(target, form, keys)) continue;
      for (const int stages : {3, kMinStages}) {
        const SplitKvConfig config{warps, keys, stages, boxed, 1};
        const int bytes = split_shared_bytes(target, form, config);
        if (boxed && stages > kMinStages && bytes > kEnough) continue;
        if (bytes + SplitKvLayout::kStatic <= target.shared_bytes) return config;
      }
    }
  }
  return std::nullopt;
}

int split_rows(const AttentionSpec& form) {
  ir::Expr rows = form.row ? form.row->extent() : nullptr;
  if (!rows) return 1;
  if (!rows->is_constant()) return kWarpRows;
  const auto count = static_cast<unsigned>(std::clamp<int64_t>(rows->integer, 1, kWarpRows));
  return static_cast<int>(std::bit_ceil(count));
}

Segments split_segments(StepBuilder& builder, const AttentionSpec& form,
                        const SplitKvConfig& config) {
  constexpr int kMinSteps = 2;
  ir::ExprPool& pool = builder.pool();
  Segments result;
  result.row_tiles =
      form.row ? ceil_div(pool, form.row->extent(), split_rows(form)) : pool.integer(1);
  result.groups = pool.mul(result.row_tiles, product_of(pool, extents_of(pool, form.others)));
  // At most as many blocks as run at once, and at least one segment.
  ir::Expr one = pool.integer(1);
  ir::Expr processors = pool.integer(int64_t{1} * config.blocks * builder.target.multiprocessors);
  ir::Expr many = pool.make(ir::ExprOp::LessEqual, {processors, result.groups});
  ir::Expr by_groups = pool.select(
      many, one,
      pool.floordiv(processors, pool.select(pool.make(ir::ExprOp::Less, {result.groups, one}), one,
                                            result.groups)));
  ir::Expr by_keys =
      pool.add(pool.floordiv(form.rows.length(), pool.integer(kMinSteps * config.step())), one);
  result.count = pool.make(ir::ExprOp::Min, {pool.make(ir::ExprOp::Min, {by_groups, by_keys}),
                                             pool.integer(Segments::kMax)});
  ir::Expr floats = pool.mul(pool.mul(result.groups, result.count),
                             pool.integer(state_block(form, split_rows(form))));
  result.states = builder.add_scratch(DType::Float32, floats);
  return result;
}

std::optional<TmaTiles> tma_tiles(StepBuilder& builder, const AttentionSpec& form) {
  constexpr int kArchitecture = 90;
  const Target& target = builder.target;
  if (target.architecture != kArchitecture || target.portable) return std::nullopt;
  if (!MmaProducts(target, form).native()) return std::nullopt;
  auto key = tma_operand(builder, form.key, form.depth, form.rows.cascade.stream);
  auto value = tma_operand(builder, form.value, form.column, form.rows.cascade.stream);
  if (!key || !value) return std::nullopt;
  return TmaTiles{*key, *value};
}

}  // namespace redfuser::codegen
