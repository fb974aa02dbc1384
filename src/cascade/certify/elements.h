// Cascades over plain elements: what a certificate does not need to compute is a value of its own.
#pragma once

#include <map>

#include "cascade/streaming.h"

namespace redfuser::cascade {

// Gives expressions that hold no leaf reads of their own: of values that do not exist otherwise, at
// the axes on which the expression depends.
class ElementReads {
 public:
  explicit ElementReads(ir::ExprPool& pool) : pool_(pool) {}
  // The same read for the same expression.
  ir::Expr of(ir::Expr expr);
  // The read of an expression that has one; else null.
  ir::Expr known(ir::Expr expr) const;

 private:
  static constexpr int64_t kFirst = int64_t{1} << 40;
  struct ById {
    bool operator()(ir::Expr a, ir::Expr b) const { return a->id < b->id; }
  };

  ir::ExprPool& pool_;
  std::map<ir::Expr, ir::Expr, ById> reads_;
};

// Both sides of a certificate.
struct Sides {
  Cascade cascade;
  Streaming streaming;
};

// Contractions inside bodies become elements, as the algebra treats them.
Sides with_contractions_read(ir::ExprPool& pool, const Sides& sides, ElementReads& reads);

// The largest parts of the cascade's expressions that hold reads and no leaf become elements, in
// the cascade and in the streaming form. An identity that holds for all elements holds for those
// that the parts compute. False where the streaming form has reads outside of these parts, since it
// takes one of them apart.
bool read_elements(Sides& sides, ir::ExprPool& pool, ElementReads& reads);

}  // namespace redfuser::cascade
