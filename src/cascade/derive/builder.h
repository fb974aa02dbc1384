// Assembles a Streaming stage by stage; internal to src/cascade.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cascade/derive/derive.h"

namespace redfuser::cascade {

class StreamingBuilder {
 public:
  StreamingBuilder(ir::ExprPool& pool, const Cascade& cascade, bool texts);

  ir::ExprPool& pool() const { return pool_; }
  const Cascade& cascade() const { return cascade_; }
  StageScope scope(size_t stage) const;

  // The number of an accumulator equal to this one, added if there is none.
  int accumulate(Accumulator accumulator);
  ir::Expr state(int accumulator) const;
  // The number of a reference with this value (over Result leaves and Count).
  int refer(ir::Expr value);
  ir::Expr old_reference(int reference, DType dtype);
  ir::Expr new_reference(int reference, DType dtype);
  // Results of stages replaced by their running values over State leaves.
  ir::Expr running(ir::Expr over_results);

  // For a report; empty if texts are not wanted.
  std::string text(ir::Expr expr) const { return texts_ ? to_string(pool_, expr) : std::string(); }

  void finish(size_t stage, ir::Expr value, Form form);
  Streaming streaming;
  std::vector<StageReport> reports;

 private:
  ir::ExprPool& pool_;
  const Cascade& cascade_;
  const bool texts_;
  std::vector<ir::Expr> running_finish_;  // `streaming.finish` over State leaves
};

}  // namespace redfuser::cascade
