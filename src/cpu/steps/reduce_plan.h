// A general reduction for fixed sizes: out[indices] = body, where body holds Reduce nodes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpu/estimate/program_time.h"
#include "cpu/steps/step_form.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

// What the columns of its tiles are: the reduced axis, an axis of the output or several of them,
// the axis of a running reduction, all of it in one tile, or, beside rows that are all of that
// axis, another one.
enum class ReduceColumnsKind { Reduced, Output, Joined, Running, BesideRunning };

class ReducePlan final : public TilePlan {
 public:
  // Fills `pool`: `indices` (axes of `pool`, or the constant 0) and `body` are specialized for the
  // sizes.
  struct Body {
    ir::ValueId value;
    std::vector<ir::Expr> indices;
    ir::Expr body;
  };
  using MakeBody = std::function<Body(ir::ExprPool& pool)>;

  // Empty where the plan was made; else why there is no such one.
  std::string build(const ir::Graph& graph, std::span<const int64_t> symbols, const MakeBody& make,
                    ReduceColumnsKind kind);

  // Rows and columns of a task. Before the first run.
  void set_tiles(int64_t rows, int64_t columns);
  // With these tiles.
  StepTime time(int threads) const;
  // Allocates and computes the output.
  void run(RunContext& context) const override;

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  // A task has a multiple of so many rows.
  int64_t run_length() const { return run_length_; }
  // The longest row of a register that is not made of output columns.
  int64_t widest() const;

 private:
  ir::ValueId value_ = -1;
  int64_t rows_ = 1, columns_ = 1, row_tile_ = 1, column_tile_ = 1, run_length_ = 1;
  int scope_ = kNoScope;
};

}  // namespace redfuser::cpu
