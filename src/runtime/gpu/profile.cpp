// Times of a GpuExecutor's calls by the device's clock, and the state of the device.
#include "cuda/nvml.h"
#include "runtime/gpu/executor.h"
#include "runtime/program/step_bytes.h"

namespace redfuser::runtime {

// The calls are recorded in a graph with an event after each: replayed, they follow one another
// without waiting for the host. Where no graph can be recorded, the same is enqueued call by call.
void GpuExecutor::profile_steps(BoundProgram& shape) {
  // A kernel may be loaded at its first launch, which a recording does not allow.
  if (shape.runs++ == 0) enqueue_all(shape, stream_);
  upload(shape);
  std::vector<cuda::Event> events;
  for (int i = 0; i <= shape.launches(); ++i) events.emplace_back(program_->device());
  const auto enqueue = [&](const auto& record) {
    size_t next = 0;
    record(events[next++]);
    for (size_t step = 0; step < shape.steps(); ++step) {
      for (const BoundProgram::Call& call : shape.calls(step)) {
        BoundProgram::enqueue(call, stream_, workspace_.address());
        record(events[next++]);
      }
    }
  };
  const cuda::Graph graph =
      recorded([&] { enqueue([&](const cuda::Event& event) { event.record_in_graph(stream_); }); });
  if (graph) {
    stream_.launch(graph);
  } else {
    enqueue([&](const cuda::Event& event) { event.record(stream_); });
  }
  stream_.synchronize();
  keep_times(shape, events);
}

void GpuExecutor::keep_times(const BoundProgram& shape, const std::vector<cuda::Event>& events) {
  const auto span = [&](size_t from, size_t to) {
    return from == to ? 0 : events[to].microseconds_since(events[from]);
  };
  size_t next = 0;
  for (size_t i = 0; i < shape.steps(); ++i) {
    const StepInfo& info = compiled_->steps[i];
    const size_t first = next;
    StepTime step{info.label, info.kind, span(0, first)};
    for (const BoundProgram::Call& call : shape.calls(i)) {
      const std::string name = BoundProgram::name_of(call);
      step.kernels.push_back({name, span(0, next), span(next, next + 1)});
      ++next;
    }
    step.duration_us = span(first, next);
    step.bytes = step_bytes(*compiled_, i, shape.symbols());
    times.push_back(std::move(step));
  }
}

std::optional<DeviceState> GpuExecutor::device_state() const {
  const cuda::DeviceInfo& info = program_->device()->info();
  const cuda::Clocks clocks = cuda::read_clocks(info.pci_bus);
  return DeviceState{clocks.sm_mhz,        clocks.memory_mhz, info.sm_mhz,   info.memory_mhz,
                     clocks.temperature_c, clocks.power_w,    clocks.problem};
}

}  // namespace redfuser::runtime
