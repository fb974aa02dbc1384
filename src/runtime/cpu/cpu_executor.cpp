#include "runtime/cpu/cpu_executor.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/tensors/blocks.h"
#include "redfuser/dlpack.h"
#include "runtime/cpu/growing_runs.h"
#include "runtime/cpu/output_targets.h"
#include "runtime/cpu/plan_run.h"
#include "runtime/facts/step_bytes.h"
#include "runtime/program/bind_inputs.h"

namespace redfuser::runtime {
namespace {

double microseconds(StepObserver::Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

class CpuExecutor : public Executor, private StepObserver {
 public:
  CpuExecutor(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options)
      : program_(std::move(program)),
        graph_(program_->graph()),
        pool_(options.threads),
        memory_limit_(cpu_memory_limit(options)),
        tune_(options.tune),
        plan_(program_, pool_, options.tune),
        growing_(*program_, pool_.size()) {}

  NamedTensors run(const NamedTensors& inputs) override { return run_into(inputs, {}); }
  NamedTensors run_into(const NamedTensors& inputs, const NamedTensors& outputs) override;
  NamedDeviceTensors enqueue(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs,
                             void* stream) override;
  std::vector<StepFacts> step_facts() const override { return plan_.step_facts(tunings); }

 private:
  static size_t index(ir::ValueId id) { return static_cast<size_t>(id); }
  void starting(size_t step) override;
  void working() override { starting(current_); }
  void computed(const fuse::Step& step, std::span<Tensor> values) override;
  bool times_steps() const override { return profiling; }
  void ended(size_t step, Clock::time_point start, std::vector<KernelTime> inner) override;
  std::vector<ir::ValueId> in_order_of_copies(const NamedTensors& memory) const;
  NamedTensors outputs(const NamedTensors& memory);
  void run_plan();
  void set_growing(const std::shared_ptr<const GrowingProgram>& growing,
                   const std::vector<GrowingState>& states, const NamedDeviceTensors& outputs);

  std::shared_ptr<const CompiledProgram> program_;
  const ir::Graph& graph_;
  ThreadPool pool_;
  int64_t memory_limit_;
  const bool tune_;
  PlanRun plan_;
  GrowingRuns growing_;
  size_t current_ = 0;  // step
  Clock::time_point start_;
};

void CpuExecutor::starting(size_t step) {
  current_ = step;
  if (progress) progress(static_cast<int>(step), static_cast<int>(program_->plan.steps.size()));
}

void CpuExecutor::computed(const fuse::Step& step, std::span<Tensor> values) {
  if (!on_value && !keeps_any()) return;
  for (const ir::ValueId id : step.writes) {
    const std::string& name = graph_.values[index(id)].name;
    Tensor& value = values[index(id)];
    if (on_value) {
      Tensor other = on_value(name, value);
      if (other.defined()) value = std::move(other);
    }
    if (keeps(name)) kept[name] = value;
  }
}

void CpuExecutor::ended(size_t step, Clock::time_point start, std::vector<KernelTime> inner) {
  const StepInfo& info = program_->steps[step];
  times.push_back(
      {info.label, info.kind, microseconds(start - start_), microseconds(Clock::now() - start)});
  for (KernelTime& time : inner) time.start_us -= microseconds(start_.time_since_epoch());
  times.back().kernels = std::move(inner);
}

// Memory of the caller may be that of an input, so what shows inputs is copied before it is
// written.
std::vector<ir::ValueId> CpuExecutor::in_order_of_copies(const NamedTensors& memory) const {
  std::vector<ir::ValueId> order = graph_.outputs;
  const auto place = [&](ir::ValueId id) {
    if (memory.count(graph_.values[index(id)].name) == 0) return 0;
    const ir::ValueId root = program_->plan.root(id);
    const auto& inputs = graph_.inputs;
    return std::find(inputs.begin(), inputs.end(), root) != inputs.end() ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](ir::ValueId a, ir::ValueId b) { return place(a) < place(b); });
  return order;
}

// The caller may reuse an input's memory, and write to outputs, once run has returned. A call's
// outputs may show parts of inputs, constants and one another.
NamedTensors CpuExecutor::outputs(const NamedTensors& memory) {
  std::set<const void*> taken;  // by inputs, the caller and earlier outputs
  for (const ir::ValueId id : graph_.inputs) taken.insert(plan_.values()[index(id)].data());
  for (const auto& [name, given] : memory) taken.insert(given.data());
  std::set<ir::ValueId> of_calls;
  for (const auto& [step, bodies] : program_->bodies) {
    const auto& writes = program_->plan.steps[step].writes;
    of_calls.insert(writes.begin(), writes.end());
  }
  NamedTensors result;
  for (const ir::ValueId id : in_order_of_copies(memory)) {
    const ir::Value& value = graph_.values[index(id)];
    const Tensor& tensor = plan_.values()[index(id)];
    RF_CHECK(tensor.defined(), "output \"{}\" was not computed", value.name);
    if (const auto given = memory.find(value.name); given != memory.end()) {
      copy_to(value.name, tensor, given->second);
      result[value.name] = given->second;
      continue;
    }
    const ir::ValueId root = program_->plan.root(id);
    const bool shared = graph_.values[index(root)].is_constant() || of_calls.count(root) > 0 ||
                        is_list(value.dtype) || !taken.insert(tensor.data()).second;
    result[value.name] = shared ? copied(tensor) : tensor;
  }
  return result;
}

NamedTensors CpuExecutor::run_into(const NamedTensors& inputs, const NamedTensors& memory) {
  struct Clear {
    PlanRun& plan;
    ~Clear() { plan.clear(); }
  } at_end{plan_};
  times.clear();
  kept.clear();
  bind_inputs(*program_, inputs, plan_.values(), plan_.symbols());
  if (!memory.empty()) {
    plan_.set_targets(output_targets(*program_, memory, plan_.values(), plan_.symbols(), !tune_));
  }
  run_plan();
  return outputs(memory);
}

void CpuExecutor::run_plan() {
  start_ = Clock::now();
  plan_.restart();
  plan_.run(memory_limit_, this);
  for (size_t i = 0; i < times.size(); ++i) {
    times[i].bytes = step_bytes(*program_, i, plan_.symbols());
  }
  const auto count = static_cast<int>(program_->plan.steps.size());
  if (progress) progress(count, count);
  peak = plan_.peak();
  tunings = plan_.tunings();
  growing_.note(plan_.symbols());
}

// Inputs that grow, other than states, are copied to memory for the greatest length.
void CpuExecutor::set_growing(const std::shared_ptr<const GrowingProgram>& growing,
                              const std::vector<GrowingState>& states,
                              const NamedDeviceTensors& outputs) {
  const cpu::GrowingSizes& sizes = growing->sizes;
  std::vector<Tensor> targets(graph_.values.size());
  for (const GrowingState& state : states) {
    const ir::Value& present = graph_.values[index(state.present)];
    const Tensor memory =
        Tensor::wrap(present.dtype, state.room, outputs.at(present.name).data, nullptr);
    plan_.values()[index(state.past)] = memory;
    if (sizes.appends.count(state.present) > 0) targets[index(state.present)] = memory;
  }
  for (const ir::ValueId id : graph_.inputs) {
    Tensor& value = plan_.values()[index(id)];
    if (!sizes.grows(graph_, id) || sizes.rooms.count(id) > 0) continue;
    value = resized(value, sizes.memory_of(graph_, id));
  }
  plan_.set_targets(std::move(targets));
  plan_.set_growing(growing);
}

NamedDeviceTensors CpuExecutor::enqueue(const NamedDeviceTensors& inputs,
                                        const NamedDeviceTensors& outputs, void* stream) {
  if (outputs.empty()) return Executor::enqueue(inputs, outputs, stream);
  const std::vector<GrowingState> states = growing_states(graph_, inputs, outputs);
  if (on_value || keeps_any() || profiling || tune_) return {};
  struct Clear {
    PlanRun& plan;
    ~Clear() { plan.clear(); }
  } at_end{plan_};
  times.clear();
  NamedTensors tensors;
  for (const auto& [name, tensor] : inputs) tensors[name] = dlpack::to_tensor(tensor);
  bind_inputs(*program_, tensors, plan_.values(), plan_.symbols());
  const auto growing = growing_.find(states, plan_.symbols());
  if (growing == nullptr) return {};
  set_growing(growing, states, outputs);
  run_plan();
  NamedTensors presents;
  NamedDeviceTensors result;
  for (const GrowingState& state : states) {
    const std::string& name = graph_.values[index(state.present)].name;
    DeviceTensor& present = result[name] = outputs.at(name);
    presents[name] = plan_.values()[index(state.present)];
    if (growing->sizes.appends.count(state.present) > 0) continue;
    present = dlpack::on_host(presents[name]);
    present.room = std::exchange(present.dims, outputs.at(name).dims);
  }
  for (const ir::ValueId id : graph_.outputs) {
    Tensor& value = plan_.values()[index(id)];
    const bool with_room = presents.count(graph_.values[index(id)].name) > 0;
    if (with_room || !growing->sizes.grows(graph_, id)) continue;
    value = resized(value, cpu::dims_of(graph_, id, plan_.symbols()));
  }
  for (const auto& [name, tensor] : this->outputs(presents)) {
    result.emplace(name, dlpack::on_host(tensor));
  }
  return result;
}

}  // namespace

int64_t cpu_memory_limit(const SessionOptions& options) {
  if (options.memory_limit > 0) return options.memory_limit;
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

std::unique_ptr<Executor> make_cpu_executor(std::shared_ptr<const CompiledProgram> program,
                                            const SessionOptions& options) {
  return std::make_unique<CpuExecutor>(std::move(program), options);
}

}  // namespace redfuser::runtime
