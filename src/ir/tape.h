// An expression as a list of operations, for evaluating it many times.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/evaluate.h"
#include "ir/expr.h"

namespace redfuser::ir {

class Tape {
 public:
  explicit Tape(Expr root);
  Tape(const Tape&) = delete;  // a read points to its indices
  Tape(Tape&&) = default;

  // Gives the result of `evaluate` in less time. Both sides of a Select are computed, so the
  // environment is called for all leaves of the expression. The tape owns its working memory: the
  // environment must not run the same tape.
  double run(const Environment& environment);

 private:
  struct Operation {
    Expr expr;
    size_t first;  // of its arguments' slots, in `arguments_`
  };
  // A read as the environment gets it: its indices are constants.
  struct ConcreteRead {
    ExprNode node;
    std::vector<ExprNode> indices;
  };

  uint32_t slot_of(Expr expr);
  double result(const Operation& operation, const Environment& environment, size_t& next_read);
  double read(const Operation& operation, ConcreteRead& read, const Environment& environment);
  double argument(const Operation& operation, size_t i) const {
    return values_[arguments_[operation.first + i]];
  }

  std::vector<Operation> operations_;  // operation i computes values_[i]
  std::vector<uint32_t> arguments_;
  std::vector<double> values_;
  std::vector<ConcreteRead> reads_;
  std::unordered_map<Expr, uint32_t> slots_;
};

}  // namespace redfuser::ir
