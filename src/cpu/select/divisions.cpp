#include "cpu/select/divisions.h"

#include <algorithm>
#include <set>

#include "cpu/select/make_kernel.h"

namespace redfuser::cpu {
namespace {

class DivisionPlan final : public StepPlan {
 public:
  DivisionPlan(std::shared_ptr<const Divisions> divisions, size_t number, int64_t inner_bytes)
      : divisions_(std::move(divisions)),
        division_(divisions_->all().at(number)),
        inner_bytes_(inner_bytes) {}

  // The region's steps have values of their own: another step may have computed inner ones as well,
  // for others than the region.
  void run(RunContext& context) const override {
    const RegionGraph& region = divisions_->region();
    std::vector<Tensor> values, targets;
    for (const ir::ValueId id : region.values) {
      values.push_back(context.values[static_cast<size_t>(id)]);
      if (!context.targets.empty()) targets.push_back(context.targets[static_cast<size_t>(id)]);
    }
    for (const auto* computed : {&division_.inner, &region.step.writes}) {
      for (const ir::ValueId id : *computed) values[static_cast<size_t>(id)] = Tensor();
    }
    RunContext part{*region.graph, values, context.symbols, context.pool};
    part.room = context.room;
    part.tune = context.tune;
    part.targets = targets;
    for (size_t i = 0; i < division_.steps.size(); ++i) run_step(part, i);
    for (const ir::ValueId id : region.step.writes) {
      const auto whole = static_cast<size_t>(region.values[static_cast<size_t>(id)]);
      context.values[whole] = std::move(values[static_cast<size_t>(id)]);
    }
    context.inner_bytes = std::max({context.inner_bytes, part.inner_bytes, inner_bytes_});
  }

  int64_t inner_bytes() const override { return inner_bytes_; }

 private:
  void run_step(RunContext& part, size_t number) const {
    const fuse::Step& step = division_.steps[number];
    if (const auto* alias = std::get_if<fuse::AliasStep>(&step.kind)) {
      part.values[static_cast<size_t>(alias->value)] =
          part.values[static_cast<size_t>(alias->source)].reshaped(
              dims_of(part.graph, alias->value, part.symbols));
    } else {
      division_.kernels[number]->run(part);
    }
    for (const ir::ValueId id : step.frees) {
      const auto& inner = division_.inner;
      if (std::find(inner.begin(), inner.end(), id) == inner.end()) continue;
      part.values[static_cast<size_t>(id)] = Tensor();
    }
  }

  std::shared_ptr<const Divisions> divisions_;
  const Divisions::Division& division_;
  int64_t inner_bytes_;
};

}  // namespace

const std::vector<Divisions::Division>& Divisions::all() const {
  std::call_once(made_, [&] {
    region_ = region_graph(graph_, step_);
    const std::set<ir::ValueId> outputs(region_.step.writes.begin(), region_.step.writes.end());
    for (fuse::Alternative& alternative : fuse::alternatives(*region_.graph, region_.step)) {
      Division division{std::move(alternative.name), std::move(alternative.steps), {}, {}};
      for (const fuse::Step& step : division.steps) {
        for (const ir::ValueId id : step.writes) {
          if (!outputs.count(id)) division.inner.push_back(id);
        }
      }
      divisions_.push_back(std::move(division));
    }
    for (Division& division : divisions_) {
      for (const fuse::Step& step : division.steps) {
        division.kernels.push_back(make_kernel(*region_.graph, step));
      }
    }
  });
  return divisions_;
}

Divisions::Cost Divisions::cost(const Division& division, std::span<const int64_t> symbols,
                                int threads) const {
  Cost cost;
  for (const std::unique_ptr<Kernel>& kernel : division.kernels) {
    if (kernel != nullptr) cost.time += kernel->estimate(symbols, threads);
  }
  cost.bytes = bytes(division, symbols);
  return cost;
}

int64_t Divisions::bytes(const Division& division, std::span<const int64_t> symbols) const {
  int64_t sum = 0;
  const ir::Graph& graph = *region_.graph;
  for (const ir::ValueId id : division.inner) {
    const auto width = static_cast<int64_t>(size_of(graph.values[static_cast<size_t>(id)].dtype));
    int64_t bytes = 0;
    if (__builtin_mul_overflow(element_count(dims_of(graph, id, symbols)), width, &bytes) ||
        __builtin_add_overflow(sum, bytes, &sum)) {
      return INT64_MAX;
    }
  }
  return sum;
}

std::shared_ptr<const StepPlan> plan_of(std::shared_ptr<const Divisions> divisions, size_t number,
                                        int64_t inner_bytes) {
  return std::make_shared<DivisionPlan>(std::move(divisions), number, inner_bytes);
}

}  // namespace redfuser::cpu
