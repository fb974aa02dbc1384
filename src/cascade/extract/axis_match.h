// Which axes of one expression stand for those of another.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace redfuser::cascade {

// Maps the axes of a second expression to the first one's by matching both. Reductions are equal up
// to free axes; bound axes are canonical already.
class AxisMatch {
 public:
  // Whether `b` is `a` over other axes, given those that are mapped already. After false the map is
  // of no use.
  bool match(ir::Expr a, ir::Expr b);
  // Pairs of an axis of `b` and the one of `a`.
  std::vector<std::pair<ir::Expr, ir::Expr>> substitution() const {
    return {map_.begin(), map_.end()};
  }

 private:
  struct ById {
    bool operator()(ir::Expr a, ir::Expr b) const { return a->id < b->id; }
  };
  std::map<ir::Expr, ir::Expr, ById> map_;
  std::set<ir::Expr> images_;
  std::set<std::pair<ir::Expr, ir::Expr>> matched_;  // mapped axes stay mapped
};

}  // namespace redfuser::cascade
