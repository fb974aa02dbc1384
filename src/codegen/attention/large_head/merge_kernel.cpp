// A block merges the segments of one row.
#include "codegen/attention/large_head/merge_kernel.h"

#include <fmt/format.h>

#include "codegen/attention/attention_functor.h"
#include "codegen/attention/large_head/config.h"
#include "codegen/attention/mma/mma_products.h"

namespace redfuser::codegen {

KernelLaunch large_head_merge_kernel(StepBuilder& builder, const AttentionSpec& form,
                                     const Segments& segments) {
  constexpr int kThreads = 128;
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  const std::string states = kernel.buffer(segments.states),
                    count = as_int(kernel.size(segments.count)),
                    row_tiles = as_int(kernel.size(segments.row_tiles)),
                    rows = kernel.size(form.row->extent());
  AttentionFunctor functor(kernel, form, MmaProducts(builder.target, form).rounded());
  const std::string config = fmt::format(
      "struct Config {{\nstatic constexpr int kRows = 1, kThreads = {}, kTileRows = {}, kMost = "
      "{};\n}};\n",
      kThreads, LargeHeadLayout::kRows, Segments::kMax);
  const std::string text = functor.text();
  KernelLaunch launch = kernel.launch(
      "attention_wide_merge", form.rows.comment,
      {"device/attention/row_merge.cuh", "device/maps/group.cuh"}, config + text,
      fmt::format("merge_row<Config>({}, reinterpret_cast<const float*>({}), {}, {}, {});\n",
                  functor.construction(), states, count, row_tiles, rows),
      kThreads);
  launch.static_shared = Segments::kMax * state_head(form) * 4;
  launch.grid[0] =
      pool.select(pool.make(ir::ExprOp::Equal, {segments.count, pool.integer(1)}), pool.integer(0),
                  pool.mul(form.row->extent(), product_of(pool, extents_of(pool, form.others))));
  return launch;
}

}  // namespace redfuser::codegen
