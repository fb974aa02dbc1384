// A block merges the segments of one row.
#include "codegen/attention/large_head/merge_kernel.h"

#include <fmt/format.h>

#include "codegen/attention/large_head/config.h"
#include "codegen/attention/mma/split_kv_merge.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {

KernelLaunch large_head_merge_kernel(StepBuilder& builder, const AttentionSpec& form,
                                     const Segments& segments) {
  constexpr int kThreads = 128, kKeys = 16;
  ir::ExprPool& pool = builder.pool();
  MmaFold tile(builder, form, kKeys, 1);
  SplitKvMerge merge(tile, form, 1, kThreads);
  KernelText& kernel = tile.kernel();
  Emitter& emitter = tile.emitter();
  const int head = state_head(form), block = state_block(form, 1);
  emitter.line(fmt::format(
      "const int segments = {}, row_tiles = {};\n"
      "const long long other = floor_div(blockIdx.x, {}), first_row = blockIdx.x - other * {};\n"
      "const long long tile = first_row / {};",
      as_int(kernel.size(segments.count)), as_int(kernel.size(segments.row_tiles)),
      tile.row_count(), tile.row_count(), LargeHeadLayout::kRows));
  bind_coordinates(emitter, form.others, "other");
  emitter.line(fmt::format(
      "const float* const states = reinterpret_cast<const float*>({0}) + ((other * row_tiles + "
      "tile) * {1} + first_row - tile * {1}) * segments * {2};\n"
      "__shared__ __align__(16) float heads[{3}];\n"
      "for (int i = threadIdx.x; i < segments * {4}; i += {5}) {{\n"
      "const int part = i / {4}, place = i - part * {4};\nheads[i] = states[part * {2} + place];\n"
      "}}\n__syncthreads();",
      kernel.buffer(segments.states), LargeHeadLayout::kRows, block, Segments::kMax * head, head,
      kThreads));
  merge.declare();
  emitter.line(fmt::format("merge(heads, {}, states, segments);", head));
  merge.write_outputs();
  KernelLaunch launch = kernel.launch("attention_wide_merge", form.rows.comment,
                                      {"device/attention.cuh"}, "", emitter.close(), kThreads);
  launch.static_shared = Segments::kMax * head * 4;
  launch.grid[0] =
      pool.select(pool.make(ir::ExprOp::Equal, {segments.count, pool.integer(1)}), pool.integer(0),
                  pool.mul(form.row->extent(), product_of(pool, extents_of(pool, form.others))));
  return launch;
}

}  // namespace redfuser::codegen
