// Cascades and streaming forms as keys: equal for those that differ only in which values they read
// and in which axes they have.
#pragma once

#include <map>
#include <string>

#include "cascade/streaming.h"
#include "ir/expr_map.h"

namespace redfuser::cascade {

// Builds a key of cascades and streaming forms. Values and axes are numbered in the order of first
// occurrence, symbols keep their numbers: keys are comparable within one pool.
class StructureKey {
 public:
  void add(const Cascade& cascade);
  // Without the bodies of its stages, which the accumulators stand for.
  void add(const Streaming& streaming);
  const std::string& text() const { return text_; }

 private:
  void add_outputs(const Cascade& cascade);
  void add_expression(ir::Expr expr);  // may be null
  void add_expressions(const std::vector<ir::Expr>& exprs);
  void add_number(int64_t number);
  int64_t number_of(int64_t value);
  uint32_t visit(ir::Expr expr);

  std::string text_;
  ir::ExprMapTo<uint32_t> known_;
  uint32_t count_ = 0;
  std::map<int64_t, int64_t> values_;
};

}  // namespace redfuser::cascade
