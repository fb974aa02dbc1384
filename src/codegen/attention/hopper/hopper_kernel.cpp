#include "codegen/attention/hopper/hopper_kernel.h"

#include <fmt/format.h>

#include "codegen/attention/hopper/hopper_functor.h"
#include "codegen/attention/hopper/select.h"

namespace redfuser::codegen {
namespace {

// Config of src/device/attention/hopper_loop.cuh.
std::string config_text(const AttentionSpec& form, const HopperConfig& config, bool claims,
                        int shared) {
  return fmt::format(
      "struct Config {{\nusing T = {};\n"
      "static constexpr int kGroups = {}, kKeys = {}, kStages = {}, kQueries = {};\n"
      "static constexpr int kDepth = {}, kColumns = {}, kShared = {};\n"
      "static constexpr bool kClaims = {};\n}};\n",
      storage_type(form.query->dtype), config.groups, config.keys, config.stages, config.queries,
      padded_size(form.depth->extent()->integer), padded_size(form.column->extent()->integer),
      shared, claims);
}

// Heads and batches whose K and V fit into the L2 cache together.
ir::Expr section_rows(ir::ExprPool& pool, const AttentionSpec& form, bool skips) {
  const int64_t cached = int64_t{skips ? 16 : 2} << 20;
  const int columns =
      padded_size(form.depth->extent()->integer) + padded_size(form.column->extent()->integer);
  ir::Expr bytes = pool.mul(form.rows.length(), pool.integer(2 * columns));
  return pool.add(pool.integer(1),
                  pool.floordiv(pool.integer(cached), pool.add(bytes, pool.integer(1))));
}

}  // namespace

KernelLaunch hopper_attention_kernel(StepBuilder& builder, const AttentionSpec& form,
                                     const HopperScores& scores, const HopperOperands& operands,
                                     const HopperConfig& config) {
  ir::ExprPool& pool = builder.pool();
  HopperFunctor functor(builder, form, scores, operands, config);
  KernelText& kernel = functor.kernel();
  const bool claims = functor.skips();
  const int shared = hopper_shared_bytes(form, scores, config),
            rows = config.groups * Warpgroup::kRows;
  ir::Expr row_tiles = ceil_div(pool, form.row->extent(), rows);
  ir::Expr other_rows = product_of(pool, extents_of(pool, form.others));
  const std::string before = config_text(form, config, claims, shared) + functor.text(false, false);
  const std::string construction = functor.construction();
  const std::string query = functor.query(rows), key = functor.key(config.keys),
                    value = functor.value(config.keys);
  const std::string body = fmt::format(
      "const Form form = {};\n"
      "const RowTiles rows = {{{}, {}, {}, {}}};\n"
      "hopper_attention<Config>(form, {{{}, {}, {}}}, rows, {}, {});\n",
      construction, as_int(kernel.size(row_tiles)), as_int(kernel.size(other_rows)),
      as_int(kernel.size(section_rows(pool, form, claims))),
      claims ? kernel.counter() : std::string("nullptr"), query, key, value, functor.lines(),
      functor.length());
  KernelLaunch launch =
      kernel.launch("attention_hopper", form.rows.comment, {"device/attention/hopper_loop.cuh"},
                    before, body, (config.groups + 1) * Warpgroup::kThreads, 1);
  launch.config = config.parameters();
  launch.shared = shared;
  launch.grid[0] = pool.make(ir::ExprOp::Min, {pool.mul(row_tiles, other_rows),
                                               pool.integer(builder.target.multiprocessors)});
  return launch;
}

}  // namespace redfuser::codegen
