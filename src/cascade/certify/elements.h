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

// The largest parts that hold reads and no leaf, and that the cascade and the streaming form share,
// become elements in both. A part that holds another one, as x·x does beside x, is divided, since
// unrelated elements would take their place. An identity that holds for all elements holds for
// those that the parts compute. False where reads outside of shared parts remain.
bool read_elements(Sides& sides, ir::ExprPool& pool, ElementReads& reads);

}  // namespace redfuser::cascade
