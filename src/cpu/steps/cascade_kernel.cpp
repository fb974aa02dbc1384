// Cascades: streaming forms on the CPU.
#include "cpu/steps/cascade_kernel.h"

#include <fmt/format.h>

#include "cpu/steps/cascade_plan.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

class CascadeKernel final : public Kernel {
 public:
  CascadeKernel(const ir::Graph& graph, const fuse::CascadeStep& step)
      : streaming_(step.streaming), cache_(graph, symbols(graph, streaming_)) {
    for (const cascade::CascadeOutput& output : streaming_.cascade.outputs)
      outputs_.push_back(output.value);
  }

  void run(RunContext& context) const override {
    auto plan = cache_.get(context, [&](std::span<const int64_t> symbols) {
      auto made = std::make_shared<CascadePlan>();
      made->build(context.graph, symbols, streaming_, context.pool.size());
      return made;
    });
    plan->run(context, outputs_);
  }

  KernelForm form(std::span<const int64_t> symbols) const override {
    const auto plan = cache_.find(symbols);
    if (plan == nullptr || plan->empty) return {kTileProgramFamily, ""};
    const int64_t columns = plan->program.scopes[static_cast<size_t>(plan->scope)].tile;
    return {kTileProgramFamily,
            plan->resident ? fmt::format("tiles of {} whole rows", plan->program.row_tile)
                           : fmt::format("tiles of {} rows, {} of the streamed axis at a time",
                                         plan->program.row_tile, columns)};
  }

 private:
  static std::vector<int64_t> symbols(const ir::Graph& graph, const cascade::Streaming& s) {
    std::vector<ir::Expr> all = s.cascade.rows;
    std::vector<ir::ValueId> values;
    all.push_back(s.cascade.stream);
    for (const cascade::Accumulator& a : s.accumulators) {
      all.insert(all.end(), {a.lift, a.transport});
      all.insert(all.end(), a.columns.begin(), a.columns.end());
    }
    for (const cascade::Reference& r : s.references) all.push_back(r.value);
    all.insert(all.end(), s.finish.begin(), s.finish.end());
    for (const cascade::CascadeOutput& output : s.cascade.outputs) {
      values.push_back(output.value);
      all.push_back(output.body);
      all.insert(all.end(), output.axes.begin(), output.axes.end());
    }
    return symbols_of(graph, all, values);
  }

  cascade::Streaming streaming_;
  PlanCache<CascadePlan> cache_;
  std::vector<ir::ValueId> outputs_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::CascadeStep& step) {
  return std::make_unique<cpu::CascadeKernel>(graph, step);
}

}  // namespace redfuser::cpu
