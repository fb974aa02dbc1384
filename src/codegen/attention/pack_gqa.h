// Rows that read the same keys and values as one axis (FlashAttention-3's pack_gqa).
#pragma once

#include <vector>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

// The axes of rows that read the same keys and values, and the others. An axis of which keys and
// values have ⌊axis/c⌋ alone counts as two axes, ⌊axis/c⌋ and axis mod c.
struct SharedRows {
  AttentionSpec form;
  std::vector<ir::Expr> shared, others;
};
SharedRows shared_rows(ir::ExprPool& pool, const AttentionSpec& form);

// The same cascade with these rows merged into one axis, `form.row`.
AttentionSpec packed_gqa_rows(ir::ExprPool& pool, const AttentionSpec& form);

}  // namespace redfuser::codegen
