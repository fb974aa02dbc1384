// The loop of a block over a segment of the keys, whose tiles the producer loads one after another.
#include "codegen/attention/large_head/mainloop.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/attention/hopper/select.h"
#include "codegen/attention/large_head/merge_kernel.h"
#include "codegen/attention/large_head/select.h"
#include "codegen/attention/large_head/text.h"
#include "codegen/attention/mma/mma_products.h"
#include "codegen/attention/pack_gqa.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

constexpr int kGroups = 2;

HopperConfig group_config(const LargeHeadConfig& config) {
  HopperConfig result;
  result.groups = 1;
  result.keys = config.group_keys();
  return result;
}

}  // namespace

LargeHeadText::LargeHeadText(StepBuilder& builder, const AttentionSpec& form,
                             const HopperScores& scores, const HopperOperands& operands,
                             const LargeHeadConfig& config, const Segments& segments)
    : HopperText(builder, form, scores, operands, group_config(config)),
      wide_(config),
      layout_(large_head_layout(form, config)),
      parts_(wide_parts(form, config)),
      segments_(segments),
      functor_(kernel_, form, MmaProducts(builder.target, form).rounded()) {
  columns_ = wide_columns(form);
  old_count_ = "folded";
  new_count_ = "(folded + tile_valid)";
  first_column_ = "group_column + ";
}

KernelLaunch LargeHeadText::launch() {
  keys_ = kernel_.size(rows_.length());
  row_count_ = kernel_.size(form_.row->extent());
  declare_memory();
  place_work();
  const std::string produce = producer(), consume = consumer();
  emitter_.line(
      fmt::format("if (group == 0) {{\nptx_give_registers<24>();\nif (threadIdx.x == 0) {{\n{}}}\n"
                  "}} else {{\nptx_take_registers<240>();\n{}}}",
                  produce, consume));
  std::vector<std::string_view> headers = {"device/key_tiles.cuh", "device/attention.cuh",
                                           "device/wide.cuh"};
  if (!functor_text_.empty()) {
    headers.push_back(wide_.cluster > 1 ? "device/attention/cluster_merge.cuh"
                                        : "device/attention/row_merge.cuh");
  }
  KernelLaunch launch = kernel_.launch("attention_wide", rows_.comment, headers, functor_text_,
                                       emitter_.close(), (kGroups + 1) * Warpgroup::kThreads, 1);
  launch.config = wide_.parameters();
  launch.shared = layout_.bytes;
  launch.cluster = wide_.cluster;
  launch.grid[0] =
      pool_.mul(pool_.mul(segments_.groups, segments_.count), pool_.integer(wide_.cluster));
  return launch;
}

void LargeHeadText::declare_memory() {
  emitter_.line(fmt::format(
      "extern __shared__ char memory[];\n"
      "char* const tiles_at = memory + (-ptx_shared_address(memory) & {});\n"
      "const unsigned q_tile = ptx_shared_address(tiles_at), k_tiles = q_tile + {}, v_tiles = "
      "q_tile + {}, weights = q_tile + {}, barriers = q_tile + {};\n"
      "char* const weights_tile = tiles_at + {};\n"
      "float* const reduced = reinterpret_cast<float*>(tiles_at + {});\n"
      "const Ring<{}> q_ring{{barriers}};\nconst Ring<{}> k_ring{{barriers + {}}};",
      TmaTile::kAlignment - 1, layout_.keys, layout_.values, layout_.weights, layout_.barriers,
      layout_.weights, layout_.reduced, parts_, parts_ * wide_.key_stages, 16 * parts_));
  std::string rings = fmt::format("k_ring.init({});\n", 4 * kGroups);
  if (values_apart()) {
    emitter_.line(fmt::format("const Ring<{}> v_ring{{barriers + {}}};", wide_.value_stages,
                              16 * parts_ * (1 + wide_.key_stages)));
    rings += fmt::format("v_ring.init({});\n", 4 * kGroups);
  }
  emitter_.line(
      fmt::format("const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);\n"
                  "if (threadIdx.x == 0) {{\nq_ring.init({});\n{}ptx_barrier_init_fence();\n}}\n"
                  "__syncthreads();",
                  4 * kGroups, rings));
}

// Clusters with the same keys are adjacent. The last rows come first, because they have the most
// keys under a causal mask.
void LargeHeadText::place_work() {
  emitter_.line(
      fmt::format("const int segments = {}, row_tiles = {};\n"
                  "const int work = blockIdx.x / {}, rank = {};\n"
                  "const int keyed = work / row_tiles, row_tile = row_tiles - 1 - (work - keyed * "
                  "row_tiles);\n"
                  "const long long other = keyed / segments;\n"
                  "const int segment = keyed - static_cast<int>(other) * segments;\n"
                  "const int first_row = row_tile * {};",
                  as_int(kernel_.size(segments_.count)), as_int(kernel_.size(segments_.row_tiles)),
                  wide_.cluster, wide_.cluster > 1 ? "static_cast<int>(ptx_cluster_rank())" : "0",
                  LargeHeadLayout::kRows));
  bind_coordinates(emitter_, form_.others, "other");
  visible_.declare(
      emitter_, "first_row",
      fmt::format("min_of(first_row + {}ll, {} - 1)", LargeHeadLayout::kRows - 1, row_count_),
      wide_.keys);
  emitter_.line(
      fmt::format("const int blocks = segments * {0}, most_tiles = (tiles + blocks - 1) / blocks;\n"
                  "const int tiles_before = (segment * {0} + rank) * most_tiles;\n"
                  "const int own_tiles = max(min(most_tiles, tiles - tiles_before), 0);",
                  wide_.cluster));
}

// Each part of Q is loaded before the same part of the first K tile.
std::string LargeHeadText::producer() {
  const int part_columns = wide_.part_slabs * TmaTile::kSlabColumns;
  auto part = [&](const std::string& ring, const std::string& use, const std::string& view,
                  const std::string& tile, int lines, int from, int columns,
                  const std::string& line, const std::vector<std::string>& at) {
    const int end = std::min(columns, from + part_columns);
    return fmt::format("const unsigned full = {}.acquire({}, {});\n{}", ring, use,
                       TmaTile{lines, end - from}.bytes(),
                       TmaTile{lines, end}.copies({tile, view, "full", line, at}, from));
  };
  const std::string query_view =
      kernel_.view(TmaTile{LargeHeadLayout::kRows}.view(operands_.query));
  const std::string key_view = kernel_.view(TmaTile{wide_.keys}.view(operands_.key));
  emitter_.open();
  emitter_.line(fmt::format("ptx_prefetch_map({});\nptx_prefetch_map({});", query_view, key_view));
  const auto query_at = declare_coordinates(emitter_, operands_.query);
  const auto key_at = declare_coordinates(emitter_, operands_.key);
  std::string text;
  for (int p = 0; p < parts_; ++p) {
    text +=
        fmt::format("if (use == 0) {{\n{}}}\n{{\n{}}}\n",
                    part("q_ring", std::to_string(p), query_view, "q_tile", LargeHeadLayout::kRows,
                         p * part_columns, depth_, "first_row", query_at),
                    part("k_ring", fmt::format("use * {} + {}", parts_, p), key_view,
                         fmt::format("k_tiles + use % {} * {}", wide_.key_stages, layout_.key),
                         wide_.keys, p * part_columns, depth_, "line", key_at));
  }
  if (values_apart()) {
    const auto columns = static_cast<int>(form_.column->extent()->integer);
    const std::string value_view = kernel_.view(TmaTile{wide_.keys}.view(operands_.value));
    emitter_.line(fmt::format("ptx_prefetch_map({});", value_view));
    text += fmt::format(
        "const unsigned full = v_ring.acquire(use, {});\n{}", layout_.value,
        TmaTile{wide_.keys, columns}.copies(
            {fmt::format("v_tiles + use % {} * {}", wide_.value_stages, layout_.value), value_view,
             "full", "line", declare_coordinates(emitter_, operands_.value)}));
  }
  emitter_.line(
      fmt::format("for (int use = 0; use < own_tiles; ++use) {{\nconst int line = {};\n{}}}",
                  first_key("tiles_before + use"), text));
  return emitter_.close();
}

std::string LargeHeadText::consumer() {
  emitter_.open();
  emitter_.line(fmt::format(
      "const int warp = threadIdx.x >> 5 & 3, quad = (threadIdx.x & 31) >> 2, pair = "
      "(threadIdx.x & 3) * 2, tile_row = warp * 16 + quad;\n"
      "const int group_row = first_row, last_group_row = static_cast<int>(min_of(first_row + "
      "{}ll, {} - 1)), own_row = first_row + tile_row;\n"
      "const int group_key = {}, other_key = {} - group_key, group_column = (group - 1) * {};",
      LargeHeadLayout::kRows - 1, row_count_,
      wide_.scorers == kGroups ? fmt::format("(group - 1) * {}", wide_.group_keys()) : "0",
      wide_.keys - wide_.group_keys(), columns_));
  declare_state();
  emitter_.line(
      fmt::format("float s[{}][4], o[{}][4] = {{}};\nunsigned p[{}][4];\nlong long "
                  "folded = 0;",
                  config_.keys / 8, columns_ / 8, config_.keys / 16));
  if (wide_.scorers == kGroups) {
    const std::string first = first_tile(), next = next_tiles();
    emitter_.line(fmt::format("if (own_tiles > 0) {{\n{}{}}}", first, next));
  } else {
    const std::string scorer = this->scorer(), follower = this->follower();
    emitter_.line(fmt::format("if (group == 1) {{\n{}}} else {{\n{}}}", scorer, follower));
  }
  finish_rows();
  return emitter_.close();
}

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
      LargeHeadText(builder, form, scores, *operands, *config, segments).launch()};
  if (!segments.count->is_constant(1)) {
    result.push_back(large_head_merge_kernel(builder, form, segments));
  }
  return result;
}

}  // namespace redfuser::codegen
