// Streams, graphs and events of libcuda.so.1 of fake_cuda.h.
#include <algorithm>

#include "fake_cuda/driver_state.h"

using namespace redfuser::device_tests;

extern "C" {

Result cuStreamCreate(StreamHandle* stream, unsigned) { return *stream = new Stream, kSuccess; }
Result cuStreamDestroy_v2(StreamHandle stream) {
  return delete static_cast<Stream*>(stream), kSuccess;
}
Result cuStreamSynchronize(StreamHandle) { return fake.failed ? kLaunchFailed : kSuccess; }
Result cuStreamBeginCapture_v2(StreamHandle stream, int) {
  const std::lock_guard lock(mutex);
  static_cast<Stream*>(stream)->lost = fake.lost_captures > 0 && fake.lost_captures--;
  static_cast<Stream*>(stream)->awaited.clear();
  return static_cast<Stream*>(stream)->capturing = true, kSuccess;
}
Result cuStreamEndCapture(StreamHandle handle, GraphHandle* graph) {
  auto& stream = *static_cast<Stream*>(handle);
  stream.capturing = false;
  *graph = new Nodes(std::move(stream.nodes));
  return stream.nodes.clear(), kSuccess;
}
Result cuStreamGetCaptureInfo_v2(StreamHandle handle, int* status, uint64_t*, GraphHandle*,
                                 const GraphNodeHandle** nodes, size_t* count) {
  const std::lock_guard lock(mutex);
  auto& stream = *static_cast<Stream*>(handle);
  if (stream.lost) return kCaptureInvalidated;
  *status = stream.capturing ? 1 : 0;
  *nodes = stream.awaited.data();
  *count = stream.awaited.size();
  return kSuccess;
}
Result cuStreamUpdateCaptureDependencies(StreamHandle handle, GraphNodeHandle* nodes, size_t count,
                                         unsigned flags) {
  const std::lock_guard lock(mutex);
  auto& stream = *static_cast<Stream*>(handle);
  if (stream.lost) return kCaptureInvalidated;
  const bool known = std::all_of(nodes, nodes + count, [&](GraphNodeHandle node) {
    const auto number = reinterpret_cast<uintptr_t>(node);
    return number > 0 && number <= stream.nodes.size();
  });
  if (!stream.capturing || flags != kSetDependencies || !known) return kInvalidValue;
  stream.awaited.assign(nodes, nodes + count);
  fake.awaits.push_back(count);
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph, unsigned long long) {
  const std::lock_guard lock(mutex);
  ++fake.live_graphs, ++fake.graphs;
  return *exec = new Nodes(*static_cast<Nodes*>(graph)), kSuccess;
}
Result cuGraphExecUpdate_v2(GraphExecHandle exec, GraphHandle graph, GraphUpdateResult*) {
  const std::lock_guard lock(mutex);
  Nodes &to = *static_cast<Nodes*>(exec), &from = *static_cast<Nodes*>(graph);
  const auto same = [](const Node& a, const Node& b) { return a.awaited == b.awaited; };
  if (!std::equal(to.begin(), to.end(), from.begin(), from.end(), same)) return kGraphUpdateFailure;
  to = from;
  return ++fake.graph_updates, kSuccess;
}
Result cuGraphExecKernelNodeSetParams_v2(GraphExecHandle exec, GraphNodeHandle handle,
                                         const KernelNodeParameters* to) {
  const std::lock_guard lock(mutex);
  Nodes& nodes = *static_cast<Nodes*>(exec);
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (!fake.changes_nodes || number == 0 || number > nodes.size()) return kInvalidValue;
  Node& node = nodes[number - 1];
  if (!node.launch || node.launch->block == 0) return kInvalidValue;
  const Kernel& kernel = *static_cast<Kernel*>(to->function);
  LaunchConfig config{};
  std::copy_n(to->grid, 3, config.grid);
  std::copy_n(to->block, 3, config.block);
  config.shared_bytes = to->shared_bytes;
  config.attributes = node.attributes.data();
  config.attribute_count = static_cast<unsigned>(node.attributes.size());
  node.work = work_of(kernel, time_of(kernel, to->block[0]), config, to->arguments);
  node.launch = launch_of(nullptr, kernel, to->grid, to->block[0], to->arguments);
  return ++fake.changed_nodes, kSuccess;
}
Result cuGraphLaunch(GraphExecHandle exec, StreamHandle) {
  const std::lock_guard lock(mutex);
  fake.changed_at_replay = fake.changed_nodes;
  for (const Node& node : *static_cast<Nodes*>(exec)) {
    node.work();
    if (node.launch) fake.replayed.push_back(*node.launch);
  }
  return ++fake.replays, fake.failed ? kLaunchFailed : kSuccess;
}
Result cuGraphExecDestroy(GraphExecHandle exec) {
  const std::lock_guard lock(mutex);
  delete static_cast<Nodes*>(exec);
  return --fake.live_graphs, kSuccess;
}
Result cuGraphDestroy(GraphHandle graph) { return delete static_cast<Nodes*>(graph), kSuccess; }

Result cuEventCreate(EventHandle* event, unsigned) { return *event = new Event, kSuccess; }
Result cuEventDestroy_v2(EventHandle event) { return delete static_cast<Event*>(event), kSuccess; }
Result cuEventRecord(EventHandle event, StreamHandle) {
  const std::lock_guard lock(mutex);
  return *static_cast<Event*>(event) = {fake.clock_ms, fake.operations}, kSuccess;
}
Result cuEventRecordWithFlags(EventHandle event, StreamHandle handle, unsigned flags) {
  const std::lock_guard lock(mutex);
  auto& stream = *static_cast<Stream*>(handle);
  if (!stream.capturing || flags != kEventRecordExternal) return kInvalidValue;
  if (stream.lost) return kCaptureInvalidated;
  stream.nodes.push_back({[event] {
                            *static_cast<Event*>(event) = {fake.clock_ms, fake.operations};
                          },
                          {},
                          {},
                          {}});
  return kSuccess;
}
Result cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  const std::lock_guard lock(mutex);
  fake.stream_waits.emplace_back(stream, static_cast<Event*>(event)->operations);
  return kSuccess;
}
Result cuEventSynchronize(EventHandle) { return kSuccess; }
Result cuEventElapsedTime(float* milliseconds, EventHandle from, EventHandle to) {
  const Event &start = *static_cast<Event*>(from), &end = *static_cast<Event*>(to);
  const double span =
      fake.kernel_ms ? end.clock_ms - start.clock_ms : start.operations != end.operations;
  return *milliseconds = static_cast<float>(span), kSuccess;
}

}  // extern "C"
