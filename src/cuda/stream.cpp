// Streams, events and graphs (driver.h).
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "cuda/driver.h"
#include "cuda/nvtx.h"

namespace redfuser::cuda {

namespace {

std::vector<void*> pointers_of(const KernelCall& call) {
  std::vector<void*> pointers;
  for (const TensorMap& map : call.maps) pointers.push_back(const_cast<TensorMap*>(&map));
  for (const uint64_t& argument : call.arguments) {
    pointers.push_back(const_cast<uint64_t*>(&argument));
  }
  return pointers;
}

}  // namespace

Graph::~Graph() {
  if (exec_ != nullptr) driver().cuGraphExecDestroy(exec_);
  if (recorded_ != nullptr) driver().cuGraphDestroy(recorded_);
}

bool Graph::change(GraphNodeHandle node, const KernelCall& call) const {
  std::vector<void*> pointers = pointers_of(call);
  const auto& grid = call.shape.grid;
  const KernelNodeParameters parameters{call.function,
                                        {grid[0], grid[1], grid[2]},
                                        {call.shape.block, 1, 1},
                                        call.shape.shared_bytes,
                                        pointers.data(),
                                        nullptr,
                                        nullptr,
                                        nullptr};
  return driver().cuGraphExecKernelNodeSetParams_v2(exec_, node, &parameters) == kSuccess;
}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(recorded_, other.recorded_);
  std::swap(exec_, other.exec_);
  return *this;
}

Stream::Stream(DevicePtr device) : device_(std::move(device)) {
  check(driver().cuStreamCreate(&stream_, kStreamNonBlocking), "creating a stream");
}

Stream::~Stream() {
  if (stream_ != nullptr && !borrowed_) driver().cuStreamDestroy_v2(stream_);
}

void Stream::synchronize() const {
  check(driver().cuStreamSynchronize(stream_), "running kernels");
}

void Stream::wait(const Event& event) const {
  check(driver().cuStreamWaitEvent(stream_, event.event_, 0), "ordering streams");
}

void Stream::to_device(DevicePointer target, const void* source, int64_t bytes) const {
  if (bytes == 0) return;
  check(driver().cuMemcpyHtoDAsync_v2(target, source, static_cast<size_t>(bytes), stream_),
        "copying to the GPU");
}

void Stream::to_host(void* target, DevicePointer source, int64_t bytes) const {
  if (bytes == 0) return;
  check(driver().cuMemcpyDtoHAsync_v2(target, source, static_cast<size_t>(bytes), stream_),
        "copying from the GPU");
}

void Stream::copy(DevicePointer target, DevicePointer source, int64_t bytes) const {
  if (bytes == 0 || target == source) return;
  check(driver().cuMemcpyDtoDAsync_v2(target, source, static_cast<size_t>(bytes), stream_),
        "copying on the GPU");
}

// The driver takes pitches below 2^31 alone.
void Stream::copy_rows(const MemoryRows& target, const MemoryRows& source, int64_t width,
                       int64_t rows) const {
  if (width == 0 || rows == 0) return;
  if (rows > 1 && std::max(target.pitch, source.pitch) > INT32_MAX) {
    MemoryRows to = target, from = source;
    for (int64_t row = 0; row < rows; ++row) {
      copy_rows(to, from, width, 1);
      to.address += static_cast<uint64_t>(to.pitch);
      from.address += static_cast<uint64_t>(from.pitch);
    }
    return;
  }
  const auto side = [&](const MemoryRows& memory) {
    RowsOfCopy result{};
    result.type = memory.on_host ? kHostMemory : kDeviceMemory;
    result.host = memory.on_host ? reinterpret_cast<void*>(memory.address) : nullptr;
    result.device = memory.on_host ? 0 : memory.address;
    result.pitch = static_cast<size_t>(rows > 1 ? memory.pitch : width);
    return result;
  };
  const CopyOfRows copy{side(source), side(target), static_cast<size_t>(width),
                        static_cast<size_t>(rows)};
  check(driver().cuMemcpy2DAsync_v2(&copy, stream_), "copying rows");
}

void Stream::fill(DevicePointer target, unsigned char byte, int64_t bytes) const {
  if (bytes == 0) return;
  check(driver().cuMemsetD8Async(target, byte, static_cast<size_t>(bytes), stream_),
        "filling GPU memory");
}

void Stream::fill_rows(DevicePointer target, int64_t pitch, unsigned char byte, int64_t width,
                       int64_t rows) const {
  if (width == 0 || rows == 0) return;
  check(driver().cuMemsetD2D8Async(target, static_cast<size_t>(pitch), byte,
                                   static_cast<size_t>(width), static_cast<size_t>(rows), stream_),
        "filling GPU memory");
}

void Stream::launch(const KernelCall& call, const std::string& name) const {
  const LaunchShape& shape = call.shape;
  std::vector<void*> pointers = pointers_of(call);
  LaunchAttribute attributes[4] = {};
  unsigned count = 0;
  if (shape.cluster > 1) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = kAttributeClusterDimension;
    attribute.cluster[0] = shape.cluster;
    attribute.cluster[1] = attribute.cluster[2] = 1;
  }
  if (shape.together) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = kAttributeCooperative;
    attribute.allowed = 1;
  }
  if (shape.early) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = kAttributeProgrammaticSerialization;
    attribute.allowed = 1;
  }
  constexpr int kFirstWithCarveout = 12080;
  if (shape.half_shared && device_->info().driver_version >= kFirstWithCarveout) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = kAttributePreferredCarveout;
    attribute.percent = 50;
  }
  LaunchConfig config{};
  for (int i = 0; i < 3; ++i) config.grid[i] = shape.grid[i];
  config.block[0] = shape.block;
  config.block[1] = config.block[2] = 1;
  config.shared_bytes = shape.shared_bytes;
  config.stream = stream_;
  config.attributes = attributes;
  config.attribute_count = count;
  const TimelineRange range(name);
  const Result result = driver().cuLaunchKernelEx(&config, call.function, pointers.data(), nullptr);
  if (result == kSuccess) return;
  const std::string what = fmt::format(
      "launching \"{}\" (grid {}x{}x{}, block {}, shared {} bytes, cluster {})", name,
      shape.grid[0], shape.grid[1], shape.grid[2], shape.block, shape.shared_bytes, shape.cluster);
  check(result, what.c_str());
}

void Stream::begin_capture() const {
  check(driver().cuStreamBeginCapture_v2(stream_, kCaptureThreadLocal), "recording a graph");
}

Graph Stream::end_capture() const {
  Graph graph;
  end_capture(graph);
  return graph;
}

bool Stream::end_capture(Graph& graph) const {
  GraphHandle recorded = nullptr;
  check(driver().cuStreamEndCapture(stream_, &recorded), "recording a graph");
  GraphUpdateResult update{};
  if (graph && driver().cuGraphExecUpdate_v2(graph.handle(), recorded, &update) == kSuccess) {
    driver().cuGraphDestroy(recorded);
    return true;
  }
  GraphExecHandle exec = nullptr;
  const Result result = driver().cuGraphInstantiateWithFlags(&exec, recorded, 0);
  graph = Graph(device_, recorded, exec);
  check(result, "making a graph ready");
  return false;
}

std::vector<GraphNodeHandle> Stream::awaited() const {
  int status = 0;
  uint64_t id = 0;
  GraphHandle graph = nullptr;
  const GraphNodeHandle* nodes = nullptr;
  size_t count = 0;
  check(driver().cuStreamGetCaptureInfo_v2(stream_, &status, &id, &graph, &nodes, &count),
        "recording a graph");
  return {nodes, nodes + count};
}

void Stream::await(std::vector<GraphNodeHandle> nodes) const {
  check(driver().cuStreamUpdateCaptureDependencies(stream_, nodes.data(), nodes.size(),
                                                   kSetDependencies),
        "recording a graph");
}

void Stream::abandon_capture() const {
  GraphHandle graph = nullptr;
  driver().cuStreamEndCapture(stream_, &graph);
  if (graph != nullptr) driver().cuGraphDestroy(graph);
}

void Stream::launch(const Graph& graph) const {
  check(driver().cuGraphLaunch(graph.handle(), stream_), "launching a graph");
}

Event::Event(DevicePtr device) : device_(std::move(device)) {
  check(driver().cuEventCreate(&event_, 0), "creating an event");
}

Event::~Event() {
  if (event_ != nullptr) driver().cuEventDestroy_v2(event_);
}

void Event::record(const Stream& stream) const {
  check(driver().cuEventRecord(event_, stream.handle()), "recording an event");
}

void Event::record_in_graph(const Stream& stream) const {
  check(driver().cuEventRecordWithFlags(event_, stream.handle(), kEventRecordExternal),
        "recording an event in a graph");
}

void Event::synchronize() const {
  check(driver().cuEventSynchronize(event_), "waiting for an event");
}

double Event::microseconds_since(const Event& start) const {
  float milliseconds = 0;
  check(driver().cuEventElapsedTime(&milliseconds, start.event_, event_),
        "reading an event's time");
  return milliseconds * 1e3;
}

}  // namespace redfuser::cuda
