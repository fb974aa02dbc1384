#include "runtime/gpu/bound/recording.h"

#include <optional>

#include "runtime/gpu/bound/bound_program.h"

namespace redfuser::runtime {
namespace {

constexpr int kMostRemade = 3;

bool is_plain(const BoundProgram::Launch& launch) {
  return launch.shape.cluster == 1 && !launch.shape.together;
}

// Whether the graph kept its nodes; nothing, and no graph, where the recording was ended by other
// threads' calls.
std::optional<bool> record_into(cuda::Graph& graph, const cuda::Stream& stream,
                                const std::function<void()>& enqueue) {
  stream.begin_capture();
  try {
    enqueue();
    return stream.end_capture(graph);
  } catch (const InternalError&) {
    stream.abandon_capture();
    graph = cuda::Graph();
    return std::nullopt;
  } catch (...) {
    stream.abandon_capture();
    throw;
  }
}

}  // namespace

cuda::Graph recorded(const cuda::Stream& stream, const std::function<void()>& enqueue) {
  cuda::Graph graph;
  record_into(graph, stream, enqueue);
  return graph;
}

// Making a graph anew takes longer than enqueuing its calls.
bool Recording::prepare(const BoundProgram& program, const cuda::Stream& stream,
                        cuda::DevicePointer workspace) {
  if (graph_ && change(program)) return true;
  return remade_ < kMostRemade && record(program, stream, workspace);
}

bool Recording::change(const BoundProgram& program) {
  if (outdated_.empty()) return true;
  if (program.overlaps() != overlaps_) return false;
  for (const size_t step : outdated_) {
    if (!change(program, step)) return false;
  }
  outdated_.clear();
  return true;
}

bool Recording::change(const BoundProgram& program, size_t step) const {
  const BoundProgram::Calls& calls = program.calls(step);
  const Kernels& kernels = kernels_[step];
  if (calls.size() != kernels.size()) return false;
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto* launch = std::get_if<BoundProgram::Launch>(&calls[i]);
    if (launch == nullptr || !is_plain(*launch) || !kernels[i].plain ||
        !graph_.change(kernels[i].node, launch->call())) {
      return false;
    }
  }
  return true;
}

bool Recording::record(const BoundProgram& program, const cuda::Stream& stream,
                       cuda::DevicePointer workspace) {
  std::vector<Kernels> kernels(program.steps());
  ++remade_;
  const std::optional<bool> updated =
      record_into(graph_, stream, [&] { enqueue(program, stream, workspace, kernels); });
  if (!updated) return false;
  if (*updated) {
    remade_ = 0;
    keep_nodes(kernels);
  }
  kernels_ = std::move(kernels);
  overlaps_ = program.overlaps();
  outdated_.clear();
  return true;
}

// An updated graph has the nodes of its first recording, in the same order.
void Recording::keep_nodes(std::vector<Kernels>& kernels) const {
  std::vector<cuda::GraphNodeHandle> nodes;
  for (const Kernels& step : kernels_) {
    for (const Kernel& kernel : step) nodes.push_back(kernel.node);
  }
  size_t count = 0;
  for (const Kernels& step : kernels) count += step.size();
  if (count != nodes.size()) return kernels.assign(kernels.size(), {});
  auto next = nodes.begin();
  for (Kernels& step : kernels) {
    for (Kernel& kernel : step) kernel.node = *next++;
  }
}

void Recording::enqueue(const BoundProgram& program, const cuda::Stream& stream,
                        cuda::DevicePointer workspace, std::vector<Kernels>& kernels) {
  std::vector<size_t> steps;  // with calls
  std::vector<StepMemory> memory;
  for (size_t i = 0; i < program.steps(); ++i) {
    if (program.calls(i).empty()) continue;
    steps.push_back(i);
    memory.push_back(program.memory(i, workspace));
  }
  const auto awaited = awaited_steps(memory);
  using Nodes = std::vector<cuda::GraphNodeHandle>;
  std::vector<Nodes> ends;  // of each step
  Nodes all;
  for (size_t i = 0; i < steps.size(); ++i) {
    Nodes before;
    for (const size_t step : awaited[i]) {
      before.insert(before.end(), ends[step].begin(), ends[step].end());
    }
    // A kernel that starts early waits for the one kernel before it, and so for all that this one
    // has waited for.
    const bool early = before.size() == 1 && program.ends_with_kernel(steps[awaited[i].front()]);
    stream.await(std::move(before));
    program.enqueue(steps[i], stream, workspace, early, [&](const BoundProgram::Call& call) {
      const auto* launch = std::get_if<BoundProgram::Launch>(&call);
      if (launch == nullptr) return;
      kernels[steps[i]].push_back({stream.awaited().back(), is_plain(*launch)});
    });
    ends.push_back(stream.awaited());
    all.insert(all.end(), ends.back().begin(), ends.back().end());
  }
  stream.await(std::move(all));
}

}  // namespace redfuser::runtime
