#include "runtime/cpu/cpu_executor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/memory_budget.h"
#include "cpu/opaque/opaque_shapes.h"
#include "redfuser/memory_limit.h"
#include "runtime/cpu/memory_meter.h"
#include "runtime/program/bind_inputs.h"
#include "runtime/program/size_checks.h"
#include "runtime/program/step_bytes.h"
#include "runtime/program/step_facts.h"

namespace redfuser::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

class CpuExecutor : public Executor {
 public:
  CpuExecutor(std::shared_ptr<const CompiledProgram> compiled, const SessionOptions& options)
      : program(std::move(compiled)),
        graph(program->graph()),
        kernels(program->cpu_kernels.of(program->plan)),
        pool(options.threads),
        memory_limit(cpu_memory_limit(options)),
        tune(options.tune),
        values(graph.values.size()),
        is_output(graph.values.size(), false) {
    for (const ir::ValueId id : graph.outputs) is_output[index(id)] = true;
    clear();
  }

  static size_t index(ir::ValueId id) { return static_cast<size_t>(id); }

  // Clears all values except constants.
  void clear() {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].data() != graph.values[i].constant.data()) values[i] = graph.values[i].constant;
    }
  }

  NamedTensors run(const NamedTensors& inputs) override;
  std::vector<StepFacts> step_facts() const override;

 private:
  void run_step(size_t number, MemoryMeter& meter);
  void run_kernel(size_t number, cpu::RunContext& context, const MemoryMeter& meter);
  void check_memory(const fuse::Step& step, const MemoryMeter& meter) const;
  int64_t outputs_of(const fuse::Step& step) const;
  void note_tunings();
  void keep(const fuse::Step& step);
  void show(const fuse::Step& step);
  void alias(const fuse::AliasStep& step);
  NamedTensors outputs() const;

  std::shared_ptr<const CompiledProgram> program;
  const ir::Graph& graph;
  const std::vector<std::unique_ptr<cpu::Kernel>>& kernels;  // by step
  ThreadPool pool;
  int64_t memory_limit;
  bool tune, has_run = false;
  std::vector<Tensor> values;
  std::vector<bool> is_output;
  std::vector<int64_t> symbols;
};

// Bytes, as far as sizes are known before the step has run.
int64_t CpuExecutor::outputs_of(const fuse::Step& step) const {
  int64_t needed = 0;
  for (const ir::ValueId id : step.writes) {
    bool known = true;
    for (const int64_t symbol : program->shape_symbols[index(id)]) {
      known = known && symbols[static_cast<size_t>(symbol)] >= 0;
    }
    if (!known) continue;
    const int64_t width = static_cast<int64_t>(size_of(graph.values[index(id)].dtype));
    int64_t bytes = 0;
    if (__builtin_mul_overflow(element_count(cpu::dims_of(graph, id, symbols)), width, &bytes) ||
        __builtin_add_overflow(needed, bytes, &needed)) {
      return INT64_MAX;
    }
  }
  return needed;
}

void CpuExecutor::check_memory(const fuse::Step& step, const MemoryMeter& meter) const {
  if (std::holds_alternative<fuse::AliasStep>(step.kind)) return;
  const int64_t needed = outputs_of(step);
  if (needed > memory_limit - meter.live()) {
    user_error("\"{}\" needs {} bytes for its outputs, with {} in use, above the limit of {}",
               step.label, needed, meter.live(), memory_limit);
  }
  // The caller's own limit also counts the inputs and the model's weights.
  if (needed > MemoryLimit::left()) {
    user_error("\"{}\" needs {} bytes for its outputs, with {} left of the memory limit",
               step.label, needed, MemoryLimit::left());
  }
}

void CpuExecutor::alias(const fuse::AliasStep& step) {
  values[index(step.value)] =
      values[index(step.source)].reshaped(cpu::dims_of(graph, step.value, symbols));
}

void CpuExecutor::keep(const fuse::Step& step) {
  for (const ir::ValueId id : step.writes) {
    const std::string& name = graph.values[index(id)].name;
    if (keeps(name)) kept[name] = values[index(id)];
  }
}

void CpuExecutor::show(const fuse::Step& step) {
  for (const ir::ValueId id : step.writes) {
    Tensor other = on_value(graph.values[index(id)].name, values[index(id)]);
    if (other.defined()) values[index(id)] = std::move(other);
  }
}

// Opaque kernels determine the sizes of their outputs and need working memory, so the limit applies
// as they allocate.
void CpuExecutor::run_kernel(size_t number, cpu::RunContext& context, const MemoryMeter& meter) {
  const fuse::Step& step = program->plan.steps[number];
  std::optional<MemoryLimit> limit;
  if (std::holds_alternative<fuse::OpaqueStep>(step.kind)) {
    limit.emplace(std::max<int64_t>(memory_limit - meter.live(), 1));
  }
  try {
    kernels[number]->run(context);
  } catch (const MemoryLimitError& error) {
    user_error("\"{}\": {}", step.label, error.what());
  }
}

void CpuExecutor::run_step(size_t number, MemoryMeter& meter) {
  const fuse::Step& step = program->plan.steps[number];
  cpu::RunContext context{graph, values, symbols, pool};
  context.tune = tune;
  for (const ir::NodeId node : step.binds) bind_runtime_shape(context, graph.nodes[index(node)]);
  check_memory(step, meter);
  const auto* same_bytes = std::get_if<fuse::AliasStep>(&step.kind);
  if (same_bytes != nullptr) {
    alias(*same_bytes);
  } else {
    for (const cpu::PositionGuard& guard : program->guards[number]) guard.run(context);
    context.room = std::min(memory_limit - meter.live() - outputs_of(step), MemoryLimit::left());
    run_kernel(number, context, meter);
    meter.note(context.inner_bytes);
  }
  for (const ir::ValueId id : step.writes) {
    const Tensor& tensor = values[index(id)];
    RF_CHECK(tensor.defined(), "step \"{}\" did not compute \"{}\"", step.label,
             graph.values[index(id)].name);
  }
  if (on_value) show(step);
  for (const ir::ValueId id : step.writes) {
    const Tensor& tensor = values[index(id)];
    // Bytes shared with an input or a constant belong to the caller or the model.
    if (same_bytes == nullptr || meter.has(tensor)) meter.add(tensor);
  }
  if (keeps_any()) keep(step);
  for (const ir::ValueId id : step.frees) {
    if (is_output[index(id)] || graph.values[index(id)].is_constant()) continue;
    meter.remove(values[index(id)]);
    values[index(id)] = Tensor();
  }
}

NamedTensors CpuExecutor::outputs() const {
  std::set<const void*> taken;  // by inputs and earlier outputs
  for (const ir::ValueId id : graph.inputs) taken.insert(values[index(id)].data());
  NamedTensors result;
  for (const ir::ValueId id : graph.outputs) {
    const ir::Value& value = graph.values[index(id)];
    const Tensor& tensor = values[index(id)];
    RF_CHECK(tensor.defined(), "output \"{}\" was not computed", value.name);
    const bool constant = graph.values[index(program->plan.root(id))].is_constant();
    // The caller may reuse an input's memory, and write to outputs, once run has returned.
    const bool shared = constant || !taken.insert(tensor.data()).second;
    result[value.name] = shared ? copied(tensor) : tensor;
  }
  return result;
}

NamedTensors CpuExecutor::run(const NamedTensors& inputs) {
  struct Clear {
    CpuExecutor& executor;
    ~Clear() { executor.clear(); }
  } at_end{*this};
  times.clear();
  kept.clear();
  bind_inputs(*program, inputs, values, symbols);
  SizeChecks checks(graph);
  checks.run(symbols);
  MemoryMeter meter;
  const size_t count = program->plan.steps.size();
  const Clock::time_point start = Clock::now();
  for (size_t i = 0; i < count; ++i) {
    if (progress) progress(static_cast<int>(i), static_cast<int>(count));
    const Clock::time_point before = Clock::now();
    run_step(i, meter);
    const fuse::Step& step = program->plan.steps[i];
    if (!step.binds.empty() || std::holds_alternative<fuse::OpaqueStep>(step.kind))
      checks.run(symbols);
    if (profiling) {
      const StepInfo& info = program->steps[i];
      times.push_back({info.label, info.kind, microseconds(before - start),
                       microseconds(Clock::now() - before)});
    }
  }
  for (size_t i = 0; i < times.size(); ++i) times[i].bytes = step_bytes(*program, i, symbols);
  if (progress) progress(static_cast<int>(count), static_cast<int>(count));
  peak = meter.peak();
  has_run = true;
  if (tune) note_tunings();
  return outputs();
}

void CpuExecutor::note_tunings() {
  tunings.clear();
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i] == nullptr) continue;
    const cpu::Selection selection = kernels[i]->selection(symbols, true);
    if (selection.measured.size() < 2) continue;
    StepTuning tuning{i, program->steps[i].label, program->steps[i].kind};
    tuning.default_choice = selection.measured.front().first;
    tuning.default_us = selection.measured.front().second;
    tuning.choice = selection.offers.front().choice;
    for (const auto& [choice, us] : selection.measured) {
      if (choice == tuning.choice) tuning.us = us;
    }
    tuning.measured = selection.measured;
    tuning.estimated_us = selection.estimated;
    tunings.push_back(std::move(tuning));
  }
}

std::vector<StepFacts> CpuExecutor::step_facts() const {
  std::vector<StepFacts> facts(kernels.size());
  for (size_t i = 0; i < kernels.size() && has_run; ++i) {
    if (kernels[i] == nullptr) continue;
    const cpu::Selection selection = kernels[i]->selection(symbols, tune);
    const auto tuning = std::find_if(tunings.begin(), tunings.end(),
                                     [&](const StepTuning& other) { return other.step == i; });
    facts[i] = facts_of(selection.offers, tuning == tunings.end() ? nullptr : &*tuning);
    facts[i].bytes = step_bytes(*program, i, symbols);
  }
  return facts;
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
