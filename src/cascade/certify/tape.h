// An expression as a list of operations, for evaluating it many times.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/evaluate.h"
#include "ir/expr.h"

namespace redfuser::cascade {

class Tape {
 public:
  explicit Tape(ir::Expr root);
  Tape(const Tape&) = delete;  // a read points to its indices
  Tape(Tape&&) = default;

  // Gives the result of `evaluate` in less time. Both sides of a Select are computed, so the
  // environment is called for all leaves of the expression. The tape owns its working memory: the
  // environment must not run the same tape.
  double run(const ir::Environment& environment);

 private:
  struct Operation {
    ir::Expr expr;
    size_t first;  // of its arguments' slots, in `arguments_`
  };
  // A read as the environment gets it: its indices are constants.
  struct ConcreteRead {
    ir::ExprNode node;
    std::vector<ir::ExprNode> indices;
  };

  uint32_t slot_of(ir::Expr expr);
  double result(const Operation& operation, const ir::Environment& environment, size_t& next_read);
  double read(const Operation& operation, ConcreteRead& read, const ir::Environment& environment);
  double argument(const Operation& operation, size_t i) const {
    return values_[arguments_[operation.first + i]];
  }

  std::vector<Operation> operations_;  // operation i computes values_[i]
  std::vector<uint32_t> arguments_;
  std::vector<double> values_;
  std::vector<ConcreteRead> reads_;
  std::unordered_map<ir::Expr, uint32_t> slots_;
};

}  // namespace redfuser::cascade
