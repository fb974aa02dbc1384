#include <optional>

#include "base/error.h"
#include "runtime/cpu/call_run.h"

namespace redfuser::runtime {
namespace {

// Adds up the times of a plan's steps over its runs, where the observer of the run around it wants
// times.
class InnerObserver final : public StepObserver {
 public:
  InnerObserver(StepObserver& outer, const CompiledProgram& program, std::vector<KernelTime>& times)
      : outer_(outer), program_(program), times_(times) {}
  void starting(size_t) override { outer_.working(); }
  void working() override { outer_.working(); }
  void computed(const fuse::Step&, std::span<Tensor>) override {}
  bool times_steps() const override { return outer_.times_steps(); }
  void ended(size_t step, Clock::time_point start, std::vector<KernelTime> inner) override {
    add({program_.steps[step].label, microseconds(start.time_since_epoch()),
         microseconds(Clock::now() - start)});
    for (KernelTime& time : inner) add(std::move(time));
  }

 private:
  static double microseconds(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  }
  void add(KernelTime time) {
    if (at_ == times_.size()) {
      times_.push_back(std::move(time));
    } else {
      times_[at_].duration_us += time.duration_us;
    }
    ++at_;
  }

  StepObserver& outer_;
  const CompiledProgram& program_;
  std::vector<KernelTime>& times_;
  size_t at_ = 0;
};

}  // namespace

BodyRun::Loaded* BodyRun::loaded_for(std::span<const Tensor* const> inputs, bool exact) {
  for (Loaded& loaded : loaded_) {
    if (loaded.body->takes(inputs) && (!exact || loaded.body->is_exact())) return &loaded;
  }
  Loaded loaded{programs_.of(inputs, exact), nullptr, nullptr, {}};
  if (loaded.body == nullptr) return nullptr;
  const auto& program = loaded.body->program.handle();
  if (program->model->needs_values.empty()) {
    loaded.plan = std::make_unique<PlanRun>(program, pool_, tune_);
    if (!loaded.body->is_exact() && !tune_) {
      loaded.growing = std::make_unique<GrowingBody>(*program, pool_.size());
    }
  }
  const auto place = loaded.body->is_exact() ? loaded_.begin() : loaded_.end();
  return &*loaded_.insert(place, std::move(loaded));
}

std::vector<Tensor> BodyRun::run(std::span<const Tensor* const> inputs, int64_t memory_limit,
                                 StepObserver* observer) {
  Loaded* loaded = loaded_for(inputs, false);
  for (const bool again : {false, true}) {
    if (loaded == nullptr || loaded->plan == nullptr) break;
    try {
      return planned(*loaded, inputs, memory_limit, observer);
    } catch (const NeedsValues&) {
      // A program for these sizes alone may have a plan where one for open sizes does not serve.
      if (again || loaded->body->is_exact()) break;
      loaded = loaded_for(inputs, true);
    }
  }
  return evaluated(inputs, observer);
}

std::vector<Tensor> BodyRun::planned(Loaded& loaded, std::span<const Tensor* const> inputs,
                                     int64_t memory_limit, StepObserver* observer) {
  given_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!loaded.body->inputs[i].constant.defined()) given_.push_back(inputs[i]);
  }
  std::optional<InnerObserver> inner;
  if (observer != nullptr) inner.emplace(*observer, loaded.plan->program(), loaded.times);
  std::vector<Tensor> outputs =
      loaded.plan->run(given_, memory_limit, inner ? &*inner : nullptr, loaded.growing.get());
  idle_ = loaded.plan->program().plan.steps.empty();
  peak_ = std::max(peak_, loaded.plan->peak());
  return outputs;
}

std::vector<Tensor> BodyRun::evaluated(std::span<const Tensor* const> inputs,
                                       StepObserver* observer) {
  std::vector<Tensor> given;
  for (const Tensor* input : inputs) given.push_back(*input);
  evaluator_.forget_sizes();
  idle_ = true;
  return evaluate_body(programs_.model(), programs_.body(), given,
                       [&](ir::Graph& graph, ir::NodeId node) {
                         if (observer != nullptr) observer->working();
                         idle_ = false;
                         evaluator_.evaluate(graph, node);
                       });
}

void BodyRun::restart() {
  for (Loaded& loaded : loaded_) {
    if (loaded.plan != nullptr) loaded.plan->restart();
    if (loaded.growing != nullptr) loaded.growing->restart();
  }
}

int64_t BodyRun::growing_plans() const {
  int64_t made = 0;
  for (const Loaded& loaded : loaded_) {
    if (loaded.growing != nullptr) made += loaded.growing->made();
  }
  return made;
}

void BodyRun::reset() {
  peak_ = 0;
  for (Loaded& loaded : loaded_) loaded.times.clear();
}

void BodyRun::collect(std::vector<KernelTime>& times) const {
  for (const Loaded& loaded : loaded_) {
    times.insert(times.end(), loaded.times.begin(), loaded.times.end());
  }
}

void BodyRun::collect(std::vector<StepKernel>& steps) const {
  for (const Loaded& loaded : loaded_) {
    if (loaded.plan == nullptr) continue;
    const std::vector<StepFacts> facts = loaded.plan->step_facts();
    for (size_t i = 0; i < facts.size(); ++i) {
      if (facts[i].family.empty()) continue;
      steps.push_back(
          {facts[i].family, facts[i].configuration, loaded.plan->program().steps[i].label});
      steps.insert(steps.end(), facts[i].kernels.begin(), facts[i].kernels.end());
    }
  }
}

}  // namespace redfuser::runtime
