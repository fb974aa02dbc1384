// Reads by one offset, the form in which kernels address memory.
#pragma once

#include <map>

#include "codegen/core/kernel_text.h"

namespace redfuser::codegen {

// Rewrites every Read of `graph` to one index, the offset; indices that are not in range by
// construction are clamped. Ranked reads (negative value numbers) and scratch reads stay.
class LinearReads {
 public:
  // Both must outlive this.
  LinearReads(const ir::Graph& graph, const Target& target) : graph_(graph), target_(target) {}
  ir::Expr flat(ir::Expr expr);
  // The offset of an element of a value of the graph.
  ir::Expr offset_of(int64_t value, const std::vector<ir::Expr>& point) const;
  // Registers a read that is already flat: flat(read) returns `read`.
  void keep(ir::Expr read) { memo_[read] = read; }

 private:
  ir::Expr in_range(ir::Expr index, ir::Expr dimension);
  const ir::Graph& graph_;
  const Target& target_;
  std::map<ir::Expr, ir::Expr> memo_;
};

// offset = base + Σ axis_i · stride_i with strides and base free of all axes; nullopt otherwise.
struct Strided {
  ir::Expr base;
  std::vector<ir::Expr> strides;
};
std::optional<Strided> strided(ir::ExprPool& pool, ir::Expr offset,
                               const std::vector<ir::Expr>& axes);

}  // namespace redfuser::codegen
