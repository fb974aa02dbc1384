// What the fake driver has made, of its device, its streams and its kernels. Internal to
// libcuda.so.1 of fake_cuda.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver_api.h"
#include "fake_cuda/fake_cuda.h"
#include "fake_cuda/kernels.h"
#include "fake_cuda/launch_rules.h"

namespace redfuser::device_tests {

using namespace redfuser::cuda;

inline constexpr Result kInvalidValue = 1, kLaunchFailed = 719, kCaptureInvalidated = 901,
                        kGraphUpdateFailure = 910;

extern FakeCuda fake;
extern std::mutex mutex;  // of everything here

struct Event {
  double clock_ms = 0;
  int operations = 0;
};

// What a stream recorded: to be done at every replay, and the launches of kernels and products.
struct Node {
  std::function<void()> work;
  std::optional<FakeCuda::Launch> launch;
  std::vector<GraphNodeHandle> awaited;  // numbers of nodes, 1 the first
  std::vector<LaunchAttribute> attributes;
};
using Nodes = std::vector<Node>;

struct Stream {
  bool capturing = false, lost = false;
  Nodes nodes;
  std::vector<GraphNodeHandle> awaited;  // by the next node

  void record(Node node) {
    node.awaited = std::move(awaited);
    nodes.push_back(std::move(node));
    awaited = {reinterpret_cast<GraphNodeHandle>(nodes.size())};
  }
};

// Machine code is the text itself; a function is its module.
struct Kernel {
  std::string text;
  FunctionState state;
  size_t hash = 0;
  int parameters = 0;
  std::shared_ptr<KernelCode> code;  // or null
  std::string name;
  std::map<std::string, std::unique_ptr<Kernel>> functions;  // of code
};

// Counts an operation on the device, which takes so long.
void pass(double milliseconds);
// Of a launch on the device; below 0: it fails.
double time_of(const Kernel& kernel, unsigned block);
FakeCuda::Launch launch_of(StreamHandle stream, const Kernel& kernel, const unsigned* grid,
                           unsigned block, void** arguments);
// The work of a launch on the device.
std::function<void()> work_of(const Kernel& kernel, double time, const LaunchConfig& config,
                              void** arguments);

}  // namespace redfuser::device_tests
