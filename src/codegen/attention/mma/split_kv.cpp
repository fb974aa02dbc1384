#include "codegen/attention/mma/split_kv.h"

#include "base/error.h"
#include "codegen/attention/mma/mma_functor.h"

namespace redfuser::codegen {
namespace {

// Config of src/device/attention/split_kv.cuh.
std::string config_text(const MmaFunctor& functor, const SplitKvConfig& config, int rows,
                        const Segments& segments, int shared) {
  return fmt::format(
      "struct Config {{\nstatic constexpr int kRows = {}, kThreads = {}, kWarps = {}, kStages = "
      "{};\n"
      "static constexpr int kSegments = {}, kShared = {};\n{}}};\n",
      rows, config.threads(), config.warps, config.stages,
      segments.count->is_constant() ? segments.count->integer : 0, shared,
      functor.config((rows + 7) / 8));
}

// TMA reads by another proxy than the threads write by.
std::string maps_text(KernelText& kernel, const BlockMaps& maps, const SplitKvConfig& config,
                      const Segments& segments) {
  const std::string other =
      fmt::format("blockIdx.x / static_cast<unsigned>({})",
                  kernel.size(kernel.pool().mul(segments.count, segments.row_tiles)));
  return block_maps_text(kernel, maps, config.threads(), other) +
         (config.boxed ? "ptx_fence_global_copies();\n" : "") + "__syncthreads();\n";
}

}  // namespace

std::optional<KernelLaunch> split_kv_kernel(StepBuilder& builder, const AttentionSpec& form) {
  const auto boxes = tma_tiles(builder, form);
  const auto config = split_kv_config(builder.target, form, boxes.has_value());
  if (!config) return std::nullopt;
  return split_kv_kernel(builder, form, *config);
}

KernelLaunch split_kv_kernel(StepBuilder& builder, const AttentionSpec& form,
                             const SplitKvConfig& config, const BlockMaps* maps) {
  const auto boxes = config.boxed ? tma_tiles(builder, form) : std::nullopt;
  RF_CHECK(!config.boxed || boxes, "TMA cannot load the keys");
  const Segments segments = split_segments(builder, form, config);
  MmaFunctor functor(builder, form, config.keys, boxes);
  KernelText& kernel = functor.kernel();
  kernel.start_early();
  const std::string before = config_text(functor, config, split_rows(form), segments,
                                         split_kv_layout(builder.target, form, config).bytes) +
                             functor.text(true);
  const std::string construction = functor.construction();
  const std::string operands = functor.operands(boxes ? 2 : 0);
  const std::string first = maps == nullptr ? "" : maps_text(kernel, *maps, config, segments);
  const std::string body = fmt::format(
      "{}const Form form = {};\nconst SplitStates out = {{reinterpret_cast<float*>({}), {}, "
      "static_cast<unsigned>({}), "
      "static_cast<unsigned>({})}};\n"
      "split_kv<Config>(form, {}, {}, {}, out);\n",
      first, construction, kernel.buffer(segments.states, true), kernel.counter(),
      kernel.size(segments.count), kernel.size(segments.row_tiles), operands, functor.lines(),
      functor.length());
  std::vector<std::string_view> headers = {boxes ? "device/attention/split_boxes.cuh"
                                                 : "device/attention/split_kv.cuh"};
  if (maps != nullptr) headers.emplace_back(kMapHeader);
  KernelLaunch launch =
      kernel.launch(maps == nullptr ? kSplitKvFamily : kBlockMapsFamily,
                    (maps == nullptr ? "" : "maps\n" + maps->equations) + form.rows.comment,
                    headers, before, body, config.threads(), config.blocks);
  launch.config = config.parameters();
  if (maps != nullptr) launch.config.emplace_back("maps", static_cast<int>(maps->shapes.size()));
  launch.shared = split_shared_bytes(builder.target, form, config);
  launch.static_shared = SplitKvLayout::kStatic;
  launch.grid[0] = builder.pool().mul(segments.groups, segments.count);
  return launch;
}

}  // namespace redfuser::codegen
