// Checks of positions that are data (the indices of a Gather), before the step that reads at them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cpu/growing/growing_kernel.h"
#include "cpu/step.h"
#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::cpu {

// One input's positions. Immutable; threads may share it.
class PositionGuard {
 public:
  // Messages begin with `where`.
  PositionGuard(const ir::Graph& graph, std::string where, ops::Positions positions);
  ~PositionGuard();
  PositionGuard(PositionGuard&&) noexcept;

  // Values of the graph that run() reads; they must be defined in the context.
  const std::vector<ir::ValueId>& reads() const { return reads_; }
  // The values that it reads are constants: whether it passes depends on sizes alone.
  bool fixed() const { return fixed_; }
  // The positions are computed by a reduction.
  bool reduces() const { return spec_.position->bound_level > 0; }
  // Sizes that run() evaluates; their symbols must be bound.
  std::vector<ir::Expr> sizes() const;
  // Throws UserError that names the node, the position and the size, for the first kind of position
  // that is out of range. `growing`: the plan of growing_form, in a run of growing sizes.
  void run(RunContext& context, const StepPlan* growing = nullptr) const;
  // For runs of growing sizes, whose values are in memory with room. Without a plan where run()
  // needs none; nullopt if it does not serve such runs.
  std::optional<std::shared_ptr<const StepPlan>> growing_form(const ir::Graph& graph,
                                                              const GrowingSizes& sizes,
                                                              int threads) const;

 private:
  void make_kernel_of(const ir::Graph& graph);
  // The positions in memory, as Int32 or Int64.
  Tensor positions(RunContext& context, const StepPlan* growing) const;

  std::string where_;
  ops::Positions spec_;
  std::vector<ir::ValueId> reads_;
  bool fixed_ = false;
  // A graph of the values read and of the positions, and the kernel that computes them; null if the
  // positions are a value of the graph.
  std::unique_ptr<ir::Graph> own_;
  std::unique_ptr<Kernel> kernel_;
};

// Inlines integer arithmetic of limited size, as for indices; for one Lowering.
ops::Lowering::Inline index_arithmetic(const ir::Graph& graph);

// The guards of a node, but for positions that are proved to be in range. `inlined` as in Lowering:
// the guards read the values that it leaves.
std::vector<PositionGuard> position_guards(const ir::Graph& graph, ir::NodeId node,
                                           const ops::Lowering::Inline& inlined);

}  // namespace redfuser::cpu
