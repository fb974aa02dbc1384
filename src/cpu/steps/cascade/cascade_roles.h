// The axes of a streaming form for fixed sizes.
#pragma once

#include <span>
#include <vector>

#include "cascade/streaming.h"
#include "cpu/steps/growing_extents.h"

namespace redfuser::cpu {

// A streaming form copied into a pool for fixed sizes, with the roles of its axes chosen.
struct SpecializedStreaming {
  cascade::Streaming form;              // of its axes, the streamed one is in `stream`
  std::vector<ir::Expr> outer, stream;  // `stream` is empty or one axis
  bool has_product = false;             // some lift holds a matrix product
  int64_t length = 1;                   // of the streamed axis

  // Every expression, for rewriting.
  std::vector<ir::Expr*> expressions();
};

// `growing`: of growing sizes, with their extents; else null for both.
SpecializedStreaming specialize(ir::ExprPool& pool, std::span<const int64_t> symbols,
                                const cascade::Streaming& streaming,
                                const GrowingSizes* growing = nullptr,
                                GrowingExtents* extents = nullptr);

}  // namespace redfuser::cpu
