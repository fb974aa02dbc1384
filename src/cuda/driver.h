// The CUDA driver: a device, its memory, streams, events, modules, launches and graphs.
//
// All objects belong to the device's primary context, which must be current on the calling thread
// (Device::make_current). They own their handles and keep the device alive. Errors have the
// driver's own name and text; out of memory and a missing GPU are UserErrors, others
// InternalErrors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver_api.h"

namespace redfuser::cuda {

// Opens the driver's library at the first call. UserError if there is none.
const DriverApi& driver();
// Throws unless `result` is success; `what` names the call.
void check(Result result, const char* what);

struct DeviceInfo {
  std::string name;      // "NVIDIA H100 80GB HBM3"
  int architecture = 0;  // compute capability times ten
  int multiprocessors = 0;
  int shared_bytes = 0;  // largest shared memory of a block, static and dynamic
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int sm_mhz = 0, memory_mhz = 0;  // the highest clocks
  double memory_rate = 0;          // bytes per microsecond, by the width and clock of the bus
  std::string pci_bus;             // "0000:19:00.0", by which NVML knows it
  int driver_version = 0;          // 13000 for CUDA 13.0
};

class Device {
 public:
  // Whether the driver shows a GPU, by a question that opens none. False without a driver.
  static bool is_there();
  // The first visible GPU (CUDA_VISIBLE_DEVICES). UserError if there is none.
  static std::shared_ptr<const Device> open();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  void make_current() const;
  int64_t free_bytes() const;
  // Waits for all streams of the context.
  void synchronize() const;

 private:
  Device() = default;
  int ordinal_ = 0;
  ContextHandle context_ = nullptr;
  DeviceInfo info_;
};
using DevicePtr = std::shared_ptr<const Device>;

// Device memory, aligned to 256 bytes.
class Buffer {
 public:
  Buffer() = default;
  // UserError if the device has not enough memory; `what` names the use.
  Buffer(DevicePtr device, int64_t bytes, const char* what);
  ~Buffer();
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  DevicePointer address() const { return address_; }
  int64_t bytes() const { return bytes_; }

 private:
  DevicePtr device_;
  DevicePointer address_ = 0;
  int64_t bytes_ = 0;
};

// Page-locked host memory, which the GPU copies directly.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(DevicePtr device, int64_t bytes);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept { *this = std::move(other); }
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  char* data() const { return static_cast<char*>(address_); }
  int64_t bytes() const { return bytes_; }

 private:
  DevicePtr device_;
  void* address_ = nullptr;
  int64_t bytes_ = 0;
};

// The number of buffers and host buffers that this process has allocated.
int64_t allocations();

class Module {
 public:
  // `name` appears in errors.
  Module(DevicePtr device, const std::string& cubin, const std::string& name);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  // A kernel, allowed `shared_bytes` of dynamic shared memory and clusters of `cluster` blocks of
  // so many threads. InternalError if the device has not the room for one of them.
  FunctionHandle function(const std::string& name, int threads, int shared_bytes,
                          int cluster) const;

 private:
  DevicePtr device_;
  ModuleHandle module_ = nullptr;
};

struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block = 1;
  uint32_t shared_bytes = 0;
  uint32_t cluster = 1;  // blocks per cluster along x
  // The kernel may start while the kernel before it in the stream still runs (programmatic
  // dependent launch).
  bool early = false;
  // All blocks run at the same time (cooperative launch).
  bool together = false;
  // The launch prefers half of the memory that a multiprocessor divides into shared memory and
  // first-level cache as shared memory. It changes the division only when it is idle, so launches
  // that overlap prefer the same one. Without effect for drivers before CUDA 12.8.
  bool half_shared = false;
};

// A kernel and its arguments: the tensor maps by value, then the 64-bit arguments.
struct KernelCall {
  FunctionHandle function = nullptr;
  LaunchShape shape;
  std::span<const TensorMap> maps;
  std::span<const uint64_t> arguments;
};

// Recorded work of a stream, replayed by one call.
class Graph {
 public:
  Graph() = default;
  // Takes ownership of the recorded graph and of its executable form.
  Graph(DevicePtr device, GraphHandle recorded, GraphExecHandle exec)
      : device_(std::move(device)), recorded_(recorded), exec_(exec) {}
  ~Graph();
  Graph(Graph&& other) noexcept { *this = std::move(other); }
  Graph& operator=(Graph&& other) noexcept;
  explicit operator bool() const { return exec_ != nullptr; }
  GraphExecHandle handle() const { return exec_; }
  // Later replays launch this in the place of a recorded kernel; neither has clusters, starts
  // early or runs together. False if the driver refuses.
  bool change(GraphNodeHandle node, const KernelCall& call) const;

 private:
  DevicePtr device_;
  GraphHandle recorded_ = nullptr;  // has the nodes
  GraphExecHandle exec_ = nullptr;
};

class Event;

// Rows of bytes, a pitch apart, in memory of the GPU or of the host.
struct MemoryRows {
  DevicePointer address = 0;
  int64_t pitch = 0;
  bool on_host = false;
};

class Stream {
 public:
  explicit Stream(DevicePtr device);
  // A stream of the caller, who destroys it.
  Stream(DevicePtr device, StreamHandle borrowed)
      : device_(std::move(device)), stream_(borrowed), borrowed_(true) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  StreamHandle handle() const { return stream_; }

  void synchronize() const;
  // Later work of this stream waits for the event.
  void wait(const Event& event) const;
  // Host memory must stay valid and unchanged until the stream is synchronised.
  void to_device(DevicePointer target, const void* source, int64_t bytes) const;
  void to_host(void* target, DevicePointer source, int64_t bytes) const;
  void copy(DevicePointer target, DevicePointer source, int64_t bytes) const;
  // `rows` rows of `width` bytes, which do not overlap. For host memory as above.
  void copy_rows(const MemoryRows& target, const MemoryRows& source, int64_t width,
                 int64_t rows) const;
  void fill(DevicePointer target, unsigned char byte, int64_t bytes) const;
  void fill_rows(DevicePointer target, int64_t pitch, unsigned char byte, int64_t width,
                 int64_t rows) const;
  // `name` appears in errors.
  void launch(const KernelCall& call, const std::string& name) const;
  void begin_capture() const;
  Graph end_capture() const;
  // Makes `graph` the recorded work. Much cheaper, and true, where it had the same calls with other
  // arguments: it keeps its nodes.
  bool end_capture(Graph& graph) const;
  // While recording: the work that later work waits for, in the order of the stream the last; and
  // other work of the recording in its place.
  std::vector<GraphNodeHandle> awaited() const;
  void await(std::vector<GraphNodeHandle> nodes) const;
  // Ends a capture that failed.
  void abandon_capture() const;
  void launch(const Graph& graph) const;

 private:
  DevicePtr device_;
  StreamHandle stream_ = nullptr;
  bool borrowed_ = false;
};

class Event {
 public:
  explicit Event(DevicePtr device);
  ~Event();
  Event(Event&& other) noexcept : device_(std::move(other.device_)), event_(other.event_) {
    other.event_ = nullptr;
  }
  Event& operator=(Event&&) = delete;
  void record(const Stream& stream) const;
  // While the stream is recorded: the graph's replays record the event.
  void record_in_graph(const Stream& stream) const;
  void synchronize() const;
  double microseconds_since(const Event& start) const;

 private:
  friend class Stream;
  DevicePtr device_;
  EventHandle event_ = nullptr;
};

}  // namespace redfuser::cuda
