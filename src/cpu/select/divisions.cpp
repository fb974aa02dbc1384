#include "cpu/select/divisions.h"

#include <algorithm>
#include <set>

#include "cpu/select/make_kernel.h"

namespace redfuser::cpu {
namespace {

// The inner values of a run. Another step may have computed them as well, for others than the
// region: theirs come back at the end.
class InnerValues {
 public:
  InnerValues(RunContext& context, const std::vector<ir::ValueId>& inner)
      : context_(context), inner_(inner) {
    for (const ir::ValueId id : inner_) others_.push_back(std::move(value(id)));
  }
  InnerValues(const InnerValues&) = delete;
  ~InnerValues() {
    for (size_t i = 0; i < inner_.size(); ++i) value(inner_[i]) = std::move(others_[i]);
  }

 private:
  Tensor& value(ir::ValueId id) const { return context_.values[static_cast<size_t>(id)]; }

  RunContext& context_;
  const std::vector<ir::ValueId>& inner_;
  std::vector<Tensor> others_;
};

class DivisionPlan final : public StepPlan {
 public:
  DivisionPlan(std::shared_ptr<const Divisions> divisions, size_t number, int64_t inner_bytes)
      : divisions_(std::move(divisions)),
        division_(divisions_->all().at(number)),
        inner_bytes_(inner_bytes) {}

  void run(RunContext& context) const override {
    const InnerValues values(context, division_.inner);
    for (size_t i = 0; i < division_.steps.size(); ++i) {
      const fuse::Step& step = division_.steps[i];
      if (const auto* alias = std::get_if<fuse::AliasStep>(&step.kind)) {
        context.values[static_cast<size_t>(alias->value)] =
            context.values[static_cast<size_t>(alias->source)].reshaped(
                dims_of(context.graph, alias->value, context.symbols));
      } else {
        division_.kernels[i]->run(context);
      }
      for (const ir::ValueId id : step.frees) {
        const auto& inner = division_.inner;
        if (std::find(inner.begin(), inner.end(), id) == inner.end()) continue;
        context.values[static_cast<size_t>(id)] = Tensor();
      }
    }
    context.inner_bytes = std::max(context.inner_bytes, inner_bytes_);
  }

  int64_t inner_bytes() const override { return inner_bytes_; }

 private:
  std::shared_ptr<const Divisions> divisions_;
  const Divisions::Division& division_;
  int64_t inner_bytes_;
};

}  // namespace

const std::vector<Divisions::Division>& Divisions::all() const {
  std::call_once(made_, [&] {
    own_ = std::make_shared<const ir::Graph>(clone(graph_));
    const std::set<ir::ValueId> outputs(step_.writes.begin(), step_.writes.end());
    for (fuse::Alternative& alternative : fuse::alternatives(*own_, step_)) {
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
        division.kernels.push_back(make_kernel(*own_, step));
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
  for (const ir::ValueId id : division.inner) {
    const auto width = static_cast<int64_t>(size_of(graph_.values[static_cast<size_t>(id)].dtype));
    int64_t bytes = 0;
    if (__builtin_mul_overflow(element_count(dims_of(graph_, id, symbols)), width, &bytes) ||
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
