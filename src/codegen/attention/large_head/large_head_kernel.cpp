#include "codegen/attention/large_head/large_head_kernel.h"

#include <fmt/format.h>

#include "codegen/attention/hopper/hopper_functor.h"
#include "codegen/attention/hopper/select.h"
#include "codegen/attention/large_head/merge_kernel.h"
#include "codegen/attention/large_head/select.h"
#include "codegen/attention/pack_gqa.h"

namespace redfuser::codegen {
namespace {

constexpr int kGroups = 2;

// Config of src/device/attention/large_head_loop.cuh.
std::string config_text(const AttentionSpec& form, const LargeHeadConfig& config,
                        const Segments& segments) {
  return fmt::format(
      "struct Config {{\nusing T = {};\n"
      "static constexpr int kKeys = {}, kKeyStages = {}, kValueStages = {}, kValueSlab = {};\n"
      "static constexpr int kPartSlabs = {}, kScorers = {}, kCluster = {};\n"
      "static constexpr bool kSegmented = {};\n"
      "static constexpr int kDepth = {}, kColumns = {}, kGroupColumns = {}, kShared = {};\n}};\n",
      storage_type(form.query->dtype), config.keys, config.key_stages, config.value_stages,
      config.value_slab, config.part_slabs, config.scorers, config.cluster,
      !segments.count->is_constant(1), padded_size(form.depth->extent()->integer),
      padded_size(form.column->extent()->integer), wide_columns(form),
      large_head_layout(form, config).bytes);
}

KernelLaunch large_head_kernel(StepBuilder& builder, const AttentionSpec& form,
                               const HopperScores& scores, const HopperOperands& operands,
                               const LargeHeadConfig& config, const Segments& segments) {
  ir::ExprPool& pool = builder.pool();
  HopperConfig tile;
  tile.keys = config.keys;
  HopperFunctor functor(builder, form, scores, operands, tile);
  KernelText& kernel = functor.kernel();
  const std::string before = config_text(form, config, segments) + functor.text(true, true);
  const std::string construction = functor.construction();
  const std::string query = functor.query(LargeHeadLayout::kRows), key = functor.key(config.keys),
                    value = config.value_stages > 0 ? functor.value(config.keys) : key;
  const std::string count = as_int(kernel.size(segments.count)),
                    row_tiles = as_int(kernel.size(segments.row_tiles));
  const std::string states =
      segments.count->is_constant(1)
          ? std::string("nullptr")
          : fmt::format("reinterpret_cast<float*>({})", kernel.buffer(segments.states, true));
  const std::string body = fmt::format(
      "const Form form = {};\n"
      "large_head_attention<Config>(form, {{{}, {}, {}}}, {{{}, {}, {}}}, {}, {});\n",
      construction, query, key, value, count, row_tiles, states, functor.lines(), functor.length());
  KernelLaunch launch =
      kernel.launch("attention_wide", form.rows.comment, {"device/attention/large_head_loop.cuh"},
                    before, body, (kGroups + 1) * Warpgroup::kThreads, 1);
  launch.config = config.parameters();
  launch.shared = large_head_layout(form, config).bytes;
  launch.cluster = config.cluster;
  launch.grid[0] =
      pool.mul(pool.mul(segments.groups, segments.count), pool.integer(config.cluster));
  return launch;
}

}  // namespace

std::optional<std::vector<KernelLaunch>> large_head_kernels(StepBuilder& builder,
                                                            const AttentionSpec& original) {
  AttentionSpec form = packed_gqa_rows(builder.pool(), original);
  auto operands = tma_operands(builder, form);
  if (!operands) {
    form = original;
    operands = tma_operands(builder, form);
  }
  if (!operands) return std::nullopt;
  auto config = large_head_config(builder, form, *operands);
  if (!config) return std::nullopt;
  config->cluster = wide_cluster(builder, form, *config);
  config->scorers = wide_scorers(builder.pool(), form, *config);
  const Segments segments = wide_segments(builder, form, *config);
  const HopperScores scores = wide_scores(builder.pool(), form);
  std::vector<KernelLaunch> result = {
      large_head_kernel(builder, form, scores, *operands, *config, segments)};
  if (!segments.count->is_constant(1)) {
    result.push_back(large_head_merge_kernel(builder, form, segments));
  }
  return result;
}

}  // namespace redfuser::codegen
