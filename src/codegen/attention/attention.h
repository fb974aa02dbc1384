// Cascades of the attention class: a contraction gives a score for every streamed element, and a
// column accumulator sums weighted rows of a value matrix. One kernel and no score matrix in
// memory.
#pragma once

#include <optional>

#include "codegen/rows/rows.h"

namespace redfuser::codegen {

struct AttentionSpec {
  FlatStreaming rows;          // as a row kernel sees it, less the column axis
  ir::Expr contraction;        // the Reduce in the lifts
  ir::Expr scale;              // its factors that are free of the contracted axis, or null
  ir::Expr depth;              // the contracted axis
  ir::Expr query, key, value;  // flat Reads: [row.., depth], [stream.., depth], [stream.., column]
  ir::Expr column;             // the axis of the value columns
  size_t value_accumulator;    // Σ weight · value
  ir::Expr weight;
  ir::Expr row;                  // the row axis that tiles run along; null: one row
  std::vector<ir::Expr> others;  // the other row axes
  // A scratch buffer whose first element is 0 if hidden keys need a visit too; -1: they need none.
  int64_t mask_check = -1;
  bool visits_hidden = false;  // whatever the mask
};

// nullopt if the cascade is not of this class, or has a size or type that the kernel does not take.
std::optional<AttentionSpec> recognize_attention(StepBuilder& builder,
                                                 const fuse::CascadeStep& step);

// The axes of rows that read the same keys and values, and the others. Digits ⌊axis/c⌋ and axis mod
// c are axes of their own where keys and values have the first alone.
struct SharedRows {
  AttentionSpec form;
  std::vector<ir::Expr> shared, others;
};
SharedRows shared_rows(ir::ExprPool& pool, const AttentionSpec& form);

// The same cascade where such rows are one axis, `form.row`.
AttentionSpec packed_gqa_rows(ir::ExprPool& pool, const AttentionSpec& form);

// The largest head sizes of the portable families.
inline constexpr int64_t kLargestPortable = 128, kLargestSplit = 256;

// True (of sizes) where blocks of 64 rows each would hold few rows, or be few with many keys each.
ir::Expr has_few_rows(StepBuilder& builder, const AttentionSpec& form);

// False for head sizes of which the GPU's shared memory does not hold the tiles.
bool fits_attention_kernel(StepBuilder& builder, const AttentionSpec& form);
KernelLaunch attention_kernel(StepBuilder& builder, const AttentionSpec& form);

// For few rows: segments of the keys by blocks of their own. nullopt if the sizes do not fit.
std::optional<KernelLaunch> split_kv_kernel(StepBuilder& builder, const AttentionSpec& form);

// For head sizes beyond 256 on sm_90a: the kernel, and that which merges segments of keys. nullopt
// if the sizes or operands do not fit.
std::optional<std::vector<KernelLaunch>> large_head_kernels(StepBuilder& builder,
                                                            const AttentionSpec& form);

}  // namespace redfuser::codegen
