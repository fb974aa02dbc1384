// Times of a GpuExecutor's calls by the device's clock, the state of the device, and what computes
// the steps.
#include <algorithm>

#include "cuda/nvml.h"
#include "runtime/facts/step_bytes.h"
#include "runtime/facts/step_facts.h"
#include "runtime/gpu/executor.h"

namespace redfuser::runtime {
namespace {

constexpr size_t kEmptySpans = 9;

}  // namespace

// The calls are recorded in a graph with an event after each: replayed, they follow one another
// without waiting for the host. Where no graph can be recorded, the same is enqueued call by call.
// A step of the host has an event after it, as a call.
void GpuExecutor::profile_steps(BoundProgram& shape, const cuda::Stream& stream,
                                const InputCopy& copy_inputs) {
  times.clear();
  // A kernel may be loaded at its first launch, which a recording does not allow.
  if (shape.runs++ == 0) {
    copy_inputs(shape);
    enqueue_all(shape, stream);
  }
  copy_inputs(shape);
  std::vector<cuda::Event> events;
  size_t spans = kEmptySpans + static_cast<size_t>(shape.launches());
  for (size_t step = 0; step < shape.steps(); ++step) spans += program_->host().has(step) ? 1 : 0;
  for (size_t i = 0; i <= spans; ++i) {
    events.emplace_back(program_->device());
  }
  const auto enqueue = [&](const auto& record) {
    size_t next = 0;
    while (next <= kEmptySpans) record(events[next++]);
    begin_host_run();
    for (size_t step = 0; step < shape.steps(); ++step) {
      if (program_->host().has(step)) {
        host_run_->run(shape, step, stream);
        record(events[next++]);
      }
      for (const BoundProgram::Call& call : shape.calls(step)) {
        BoundProgram::enqueue(call, stream, workspace_.address());
        record(events[next++]);
      }
    }
  };
  cuda::Graph graph;
  if (host_run_ == nullptr) {
    graph = recorded(
        stream, [&] { enqueue([&](const cuda::Event& event) { event.record_in_graph(stream); }); });
  }
  if (graph) {
    stream.launch(graph);
  } else {
    enqueue([&](const cuda::Event& event) { event.record(stream); });
  }
  stream.synchronize();
  keep_times(shape, events);
}

// Events take time themselves: as long as those with nothing between them.
void GpuExecutor::keep_times(const BoundProgram& shape, const std::vector<cuda::Event>& events) {
  std::vector<double> empty;
  for (size_t i = 0; i < kEmptySpans; ++i) {
    empty.push_back(events[i + 1].microseconds_since(events[i]));
  }
  std::nth_element(empty.begin(), empty.begin() + kEmptySpans / 2, empty.end());
  const double own = empty[kEmptySpans / 2];
  size_t next = kEmptySpans;
  double now = 0;
  for (size_t i = 0; i < shape.steps(); ++i) {
    const StepInfo& info = compiled_->steps[i];
    StepTime step{info.label, info.kind, now};
    const auto keep = [&](const std::string& name) {
      const double span = events[next + 1].microseconds_since(events[next]);
      step.kernels.push_back({name, now, std::max(span - own, 0.0)});
      now += step.kernels.back().duration_us;
      ++next;
    };
    const bool on_host = program_->host().has(i);
    if (on_host) keep("CPU, with copies");
    for (const BoundProgram::Call& call : shape.calls(i)) keep(BoundProgram::name_of(call));
    step.duration_us = now - step.start_us;
    if (!on_host) {
      for (const size_t done : program_->joined().done_by(i)) {
        step.bytes += step_bytes(*compiled_, done, shape.symbols());
      }
    }
    times.push_back(std::move(step));
  }
}

std::optional<DeviceState> GpuExecutor::device_state() const {
  const cuda::DeviceInfo& info = program_->device()->info();
  const cuda::Clocks clocks = cuda::read_clocks(info.pci_bus);
  return DeviceState{clocks.sm_mhz,        clocks.memory_mhz, info.sm_mhz,   info.memory_mhz,
                     clocks.temperature_c, clocks.power_w,    clocks.problem};
}

std::vector<StepFacts> GpuExecutor::step_facts() const {
  if (shapes_.empty()) return {};
  const BoundProgram& shape = shapes_.front().second;
  const std::vector<int64_t> symbols = program_->with_most(shape.symbols());
  const select::KnownSizes sizes(symbols);
  const ir::Graph own = clone(graph_);  // the program's takes no new expressions
  std::vector<StepFacts> facts;
  for (size_t i = 0; i < shape.steps(); ++i) {
    if (program_->host().has(i)) {
      facts.emplace_back().family = "CPU";
      continue;
    }
    const auto tuned = std::find_if(shape.tunings.begin(), shape.tunings.end(),
                                    [&](const StepTuning& tuning) { return tuning.step == i; });
    const std::vector<codegen::Offer> offers = program_->joined().offers_at(
        own, compiled_->plan, i, program_->target(), sizes, steps_[i]->form);
    facts.push_back(facts_of(shape.loaded(i)->form, offers, sizes,
                             tuned == shape.tunings.end() ? nullptr : &*tuned));
  }
  return facts;
}

}  // namespace redfuser::runtime
