// Reads by one row-major offset, the form in which kernels address memory.
#pragma once

#include <map>

#include "codegen/core/kernel_text.h"

namespace redfuser {

// Rewrites every Read of `graph` to one index, the offset; indices that are not in range by
// construction are clamped. Ranked reads (negative value numbers) and scratch reads stay.
class FlatReads {
 public:
  explicit FlatReads(const Graph& graph) : graph_(graph) {}
  Expr flat(Expr expr);
  // `read` is flat already: flat(read) is itself.
  void keep(Expr read) { memo_[read] = read; }

 private:
  Expr in_range(Expr index, Expr dimension);
  const Graph& graph_;
  std::map<Expr, Expr> memo_;
};

// The row-major offset of a point among dimensions.
Expr row_major(ExprPool& pool, const std::vector<Expr>& point, const std::vector<Expr>& dims);

// offset = base + Σ axis_i · stride_i with strides and base free of all axes; nullopt otherwise.
struct Strided {
  Expr base;
  std::vector<Expr> strides;
};
std::optional<Strided> strided(ExprPool& pool, Expr offset, const std::vector<Expr>& axes);

}  // namespace redfuser
