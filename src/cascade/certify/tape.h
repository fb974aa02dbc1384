// An expression as a list of operations, for evaluating it many times.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/evaluate.h"
#include "ir/expr.h"

namespace redfuser::cascade {

// The positions [begin, end) of an axis.
struct AxisRange {
  ir::Expr axis;
  int64_t begin, end;
};

class Tape {
 public:
  explicit Tape(ir::Expr root);
  Tape(const Tape&) = delete;  // a read points to its indices
  Tape(Tape&&) = default;

  // Gives the result of `evaluate` in less time. Both sides of a Select are computed, so the
  // environment is called for all leaves of the expression. The tape owns its working memory: the
  // environment must not run the same tape.
  double run(const ir::Environment& environment);
  // The same at every position of a range, whose axis the environment does not get. It is called
  // once for what does not depend on the axis.
  void run(const ir::Environment& environment, const AxisRange& range, double* results);

 private:
  static constexpr size_t kWidth = 32;  // positions at once

  struct Operation {
    ir::Expr expr;
    size_t first;  // of its arguments' slots, in `arguments_`
    size_t read;   // of `reads_`
    bool varies;   // along `axis_`
  };
  // A read as the environment gets it: its indices are constants.
  struct ConcreteRead {
    ir::ExprNode node;
    std::vector<ir::ExprNode> indices;
  };
  // Some positions of an axis; null: one point.
  struct Points {
    ir::Expr axis;
    int64_t begin;
    size_t count;
  };

  uint32_t slot_of(ir::Expr expr);
  void set_axis(ir::Expr axis);
  // What does not depend on the axis gets `width` equal values: later points may be more than
  // these.
  void run(const ir::Environment& environment, const Points& points, size_t width, bool again);
  void compute(const Operation& operation, const ir::Environment& environment, const Points& points,
               double* results);
  void read(const Operation& operation, const ir::Environment& environment, size_t count,
            double* results);
  const double* argument(const Operation& operation, size_t i) const {
    return values_.data() + arguments_[operation.first + i] * kWidth;
  }

  std::vector<Operation> operations_;  // operation i computes kWidth values from i * kWidth
  std::vector<uint32_t> arguments_;
  std::vector<double> values_;
  std::vector<ConcreteRead> reads_;
  std::unordered_map<ir::Expr, uint32_t> slots_;
  ir::Expr axis_ = nullptr;  // of the last run
};

}  // namespace redfuser::cascade
