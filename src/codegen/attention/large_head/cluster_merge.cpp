// The merge of the states of a cluster's blocks.
#include <fmt/format.h>

#include "codegen/attention/large_head/text.h"
#include "codegen/text/loop.h"

namespace redfuser::codegen {

// Afterwards o (the block's part of the columns), the scalars and references are those of the
// merged state.
void LargeHeadText::finish_cluster() {
  declare_functor();
  emitter_.line(fmt::format(
      "Form::Row rows[2];\n{}\n"
      "const int part_column = merge_cluster<{}>(form, own, o, tiles_at, {}, {{rank, group - 1, "
      "tile_row}}, rows);\n{}",
      unrolled("h", 2,
               fmt::format("rows[h] = form.row_of(other, min(own_row + h * 8ll, {} - 1));\n",
                           row_count_)),
      wide_.cluster, layout_.heads, unrolled("h", 2, functor_.to_registers("own[h]", "folded"))));
  columns_ /= wide_.cluster;
  first_column_ = "part_column + ";
  write_rows();
  // The block's shared memory must stay until the others have read its state.
  emitter_.line("ptx_cluster_wait();");
}

}  // namespace redfuser::codegen
