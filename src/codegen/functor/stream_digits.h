// A streamed axis over several dimensions: positions have digits in mixed radix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/core/emitter.h"

namespace redfuser::codegen {

// The quotients and remainders of `stream` by sizes, also nested ones, in an expression outside of
// its reads; operands first.
std::vector<ir::Expr> digits_in(ir::Expr root, ir::Expr stream);

// C where the offset has the digit j mod C of the stream j: elements are adjacent in runs of C at
// most. 0 where it has none, or C is known at run time only.
int64_t last_digit(ir::Expr offset, ir::Expr stream);

// Binds the digits in `roots` in the emitter's scope. `position` is the streamed position, below
// 2^31, and is divided in 32 bits.
void bind_digits(Emitter& emitter, const std::vector<ir::Expr>& roots, ir::Expr stream,
                 const std::string& position);

// An offset over groups of `width` adjacent positions that start at multiples of `width`: `stride`
// elements between adjacent positions, 0 or 1, if the digits change only between groups.
struct GroupedOffset {
  int stride = 0;
  std::vector<ir::Expr> units;  // sizes that must be multiples of `width`
};
std::optional<GroupedOffset> grouped_offset(ir::ExprPool& pool, ir::Expr offset, ir::Expr stream,
                                            int width);

}  // namespace redfuser::codegen
