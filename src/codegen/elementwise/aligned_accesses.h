// Accesses of memory by groups of adjacent elements, and when all of them are those of vectors.
#pragma once

#include <string>
#include <vector>

#include "codegen/core/kernel_text.h"

namespace redfuser::codegen {

// Size products that must be multiples of `unit` for the offset to be one, whatever its axes.
std::vector<ir::Expr> offset_units(ir::ExprPool& pool, ir::Expr offset);

// The offset where `axis` is 0, if elements are adjacent along that axis; else null.
ir::Expr adjacent_from(ir::ExprPool& pool, ir::Expr offset, ir::Expr axis);
// The same of the points of several axes in row-major order.
ir::Expr adjacent_from(ir::ExprPool& pool, ir::Expr offset, const std::vector<ir::Expr>& axes);

class AlignedAccesses {
 public:
  // The kernel must outlive this.
  explicit AlignedAccesses(KernelText& kernel) : kernel_(kernel) {}

  // Groups of a buffer begin at multiples of their width, in elements from its start on.
  void add(const std::string& buffer);
  // They do where these sizes are multiples of the width, or where the offset `base` is one.
  void add(const std::string& buffer, const std::vector<ir::Expr>& units);
  void add(const std::string& buffer, ir::Expr base);
  void add(const AlignedAccesses& others);
  void require(const std::vector<ir::Expr>& units);

  bool empty() const { return buffers_.empty(); }
  // Whether all are aligned and lines of `points` (null: any) consist of whole groups, as text.
  std::string condition(ir::Expr points, int width) const;

 private:
  KernelText& kernel_;
  std::vector<std::string> buffers_;
  std::vector<ir::Expr> units_;
};

}  // namespace redfuser::codegen
