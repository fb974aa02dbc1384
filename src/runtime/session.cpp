#include <unistd.h>

#include <chrono>
#include <cstring>
#include <set>

#include "base/error.h"
#include "cpu/opaque_shapes.h"
#include "runtime/bind_inputs.h"
#include "runtime/size_checks.h"
#include "runtime/compiled_program.h"
#include "runtime/memory_meter.h"

namespace redfuser {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

int64_t physical_memory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

Tensor copied(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.dims());
  if (tensor.bytes() > 0) std::memcpy(copy.mutable_data(), tensor.data(), tensor.bytes());
  return copy;
}

}  // namespace

struct Session::Impl {
  Impl(std::shared_ptr<const CompiledProgram> compiled, const SessionOptions& options)
      : program(std::move(compiled)),
        graph(program->graph()),
        pool(options.threads),
        memory_limit(options.memory_limit > 0 ? options.memory_limit : physical_memory()),
        values(graph.values.size()),
        is_output(graph.values.size(), false) {
    for (const ValueId id : graph.outputs) is_output[index(id)] = true;
    clear();
  }

  static size_t index(ValueId id) { return static_cast<size_t>(id); }

  // Forgets a run: only constants stay.
  void clear() {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].data() != graph.values[i].constant.data()) values[i] = graph.values[i].constant;
    }
  }

  NamedTensors run(const NamedTensors& inputs);
  void run_step(size_t number, MemoryMeter& meter);
  void check_memory(const Step& step, const MemoryMeter& meter) const;
  void keep(const Step& step);
  void alias(const AliasStep& step);
  NamedTensors outputs() const;

  std::shared_ptr<const CompiledProgram> program;
  const Graph& graph;
  ThreadPool pool;
  int64_t memory_limit;
  std::vector<Tensor> values;
  std::vector<bool> is_output;
  std::vector<int64_t> symbols;
  bool profiling = false, keep_all = false;
  std::set<std::string> keep_names;
  std::vector<StepTime> times;
  NamedTensors kept;
  std::function<void(int, int)> progress;
  int64_t peak = 0;
};

void Session::Impl::check_memory(const Step& step, const MemoryMeter& meter) const {
  if (std::holds_alternative<AliasStep>(step.kind)) return;
  int64_t needed = 0;
  for (const ValueId id : step.writes) {
    bool known = true;
    for (const int64_t symbol : program->shape_symbols[index(id)]) {
      known = known && symbols[static_cast<size_t>(symbol)] >= 0;
    }
    if (!known) continue;
    const int64_t width = static_cast<int64_t>(size_of(graph.values[index(id)].dtype));
    int64_t bytes = 0;
    if (__builtin_mul_overflow(element_count(dims_of(graph, id, symbols)), width, &bytes) ||
        __builtin_add_overflow(needed, bytes, &needed)) {
      needed = INT64_MAX;
      break;
    }
  }
  if (needed > memory_limit - meter.live()) {
    user_error("\"{}\" needs {} bytes for its outputs, with {} in use, above the limit of {}",
               step.label, needed, meter.live(), memory_limit);
  }
}

void Session::Impl::alias(const AliasStep& step) {
  values[index(step.value)] =
      values[index(step.source)].reshaped(dims_of(graph, step.value, symbols));
}

void Session::Impl::keep(const Step& step) {
  for (const ValueId id : step.writes) {
    const std::string& name = graph.values[index(id)].name;
    if (keep_all || keep_names.count(name) > 0) kept[name] = values[index(id)];
  }
}

void Session::Impl::run_step(size_t number, MemoryMeter& meter) {
  const Step& step = program->plan.steps[number];
  RunContext context{graph, values, symbols, pool};
  for (const NodeId node : step.binds) bind_runtime_shape(context, graph.nodes[index(node)]);
  check_memory(step, meter);
  const auto* same_bytes = std::get_if<AliasStep>(&step.kind);
  if (same_bytes != nullptr) {
    alias(*same_bytes);
  } else {
    program->kernels[number]->run(context);
  }
  for (const ValueId id : step.writes) {
    const Tensor& tensor = values[index(id)];
    RF_CHECK(tensor.defined(), "step \"{}\" did not compute \"{}\"", step.label,
             graph.values[index(id)].name);
    // Bytes shared with an input or a constant belong to the caller or the model.
    if (same_bytes == nullptr || meter.has(tensor)) meter.add(tensor);
  }
  if (keep_all || !keep_names.empty()) keep(step);
  for (const ValueId id : step.frees) {
    if (is_output[index(id)] || graph.values[index(id)].is_constant()) continue;
    meter.remove(values[index(id)]);
    values[index(id)] = Tensor();
  }
}

NamedTensors Session::Impl::outputs() const {
  std::set<const void*> inputs;
  for (const ValueId id : graph.inputs) inputs.insert(values[index(id)].data());
  NamedTensors result;
  for (const ValueId id : graph.outputs) {
    const Value& value = graph.values[index(id)];
    const Tensor& tensor = values[index(id)];
    RF_CHECK(tensor.defined(), "output \"{}\" was not computed", value.name);
    // The caller may reuse an input's memory once run has returned.
    result[value.name] = inputs.count(tensor.data()) > 0 ? copied(tensor) : tensor;
  }
  return result;
}

NamedTensors Session::Impl::run(const NamedTensors& inputs) {
  struct Clear {
    Impl& impl;
    ~Clear() { impl.clear(); }
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
    const Step& step = program->plan.steps[i];
    if (!step.binds.empty() || std::holds_alternative<OpaqueStep>(step.kind)) checks.run(symbols);
    if (profiling) {
      const StepInfo& info = program->steps[i];
      times.push_back({info.label, info.kind, microseconds(before - start),
                       microseconds(Clock::now() - before)});
    }
  }
  if (progress) progress(static_cast<int>(count), static_cast<int>(count));
  peak = meter.peak();
  return outputs();
}

Session::Session(const Program& program, const SessionOptions& options) {
  RF_CHECK(program.handle() != nullptr, "Session: the program is empty");
  impl_ = std::make_unique<Impl>(program.handle(), options);
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

NamedTensors Session::run(const NamedTensors& inputs) { return impl_->run(inputs); }

void Session::profile(bool on) { impl_->profiling = on; }

const std::vector<StepTime>& Session::step_times() const { return impl_->times; }

void Session::on_progress(std::function<void(int, int)> callback) {
  impl_->progress = std::move(callback);
}

int64_t Session::peak_bytes() const { return impl_->peak; }

void Session::keep_values(bool on) {
  impl_->keep_all = on;
  impl_->keep_names.clear();
}

void Session::keep_values(const std::vector<std::string>& names) {
  impl_->keep_all = false;
  impl_->keep_names = {names.begin(), names.end()};
}

const NamedTensors& Session::kept_values() const { return impl_->kept; }

}  // namespace redfuser
