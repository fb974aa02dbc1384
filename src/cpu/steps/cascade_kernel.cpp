// Cascades: streaming forms on the CPU.
#include "cpu/steps/cascade_plan.h"
#include "cpu/tile/specialize.h"

namespace redfuser {
namespace cpu {
namespace {

class CascadeKernel final : public Kernel {
 public:
  CascadeKernel(const Graph& graph, const CascadeStep& step)
      : streaming_(step.streaming), cache_(graph, symbols(graph, streaming_)) {
    for (const CascadeOutput& output : streaming_.outputs) outputs_.push_back(output.value);
  }

  void run(RunContext& context) const override {
    auto plan = cache_.get(context, [&](std::span<const int64_t> symbols) {
      auto made = std::make_shared<CascadePlan>();
      made->build(context.graph, symbols, streaming_, context.pool.size());
      return made;
    });
    plan->run(context, outputs_);
  }

 private:
  static std::vector<int64_t> symbols(const Graph& graph, const Streaming& s) {
    std::vector<Expr> all = s.rows;
    std::vector<ValueId> values;
    all.push_back(s.stream);
    for (const Accumulator& a : s.accumulators) {
      all.insert(all.end(), {a.lift, a.transport});
      all.insert(all.end(), a.columns.begin(), a.columns.end());
    }
    for (const Reference& r : s.references) all.push_back(r.value);
    all.insert(all.end(), s.finish.begin(), s.finish.end());
    for (const CascadeOutput& output : s.outputs) {
      values.push_back(output.value);
      all.push_back(output.body);
      all.insert(all.end(), output.axes.begin(), output.axes.end());
    }
    return symbols_of(graph, all, values);
  }

  Streaming streaming_;
  PlanCache<CascadePlan> cache_;
  std::vector<ValueId> outputs_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Kernel> make_kernel(const Graph& graph, const CascadeStep& step) {
  return std::make_unique<cpu::CascadeKernel>(graph, step);
}

}  // namespace redfuser
