// Positions on a streamed axis that several dimensions share: its digits in mixed radix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/core/emitter.h"

namespace redfuser::codegen {

// The quotients and remainders of `stream` by sizes, and of these, in an expression outside of its
// reads; operands first.
std::vector<ir::Expr> digits_in(ir::Expr root, ir::Expr stream);

// C where the offset has the digit j mod C of the stream j: elements are adjacent in runs of C at
// most. 0 where it has none, or C is known at run time only.
int64_t last_digit(ir::Expr offset, ir::Expr stream);

// Binds those of `roots` in the emitter's scope, where `position` is the streamed position: a
// number below 2^31, divided in 32 bits.
void bind_digits(Emitter& emitter, const std::vector<ir::Expr>& roots, ir::Expr stream,
                 const std::string& position);

// How an offset runs over groups of `width` neighbours from a multiple of `width` on: `stride`
// elements from one to the next, 0 or 1, wherever the stream's digits change between groups alone.
struct GroupedOffset {
  int stride = 0;
  std::vector<ir::Expr> units;  // sizes that must be multiples of `width`
};
std::optional<GroupedOffset> grouped_offset(ir::ExprPool& pool, ir::Expr offset, ir::Expr stream,
                                            int width);

}  // namespace redfuser::codegen
