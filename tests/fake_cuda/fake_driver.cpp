// libcuda.so.1 of fake_cuda.h.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "fake_cuda/driver_state.h"

using namespace redfuser::device_tests;
namespace {

FakeCuda made() {
  FakeCuda result;
  result.architecture = first_architecture();
  if (runs_kernels()) result.memory = size_t{8} << 30;
  return result;
}

}  // namespace

namespace redfuser::device_tests {

FakeCuda fake = made();
std::mutex mutex;

void pass(double milliseconds) {
  fake.clock_ms += milliseconds;
  ++fake.operations;
}

FakeCuda::Launch launch_of(StreamHandle stream, const Kernel& kernel, const unsigned* grid,
                           unsigned block, void** arguments) {
  FakeCuda::Launch launch{stream, {}, block, 0, kernel.hash, {grid[0], grid[1], grid[2]}};
  for (int i = 0; i < kernel.parameters; ++i) {
    launch.arguments.push_back(*static_cast<uint64_t*>(arguments[i]));
  }
  return launch;
}

std::function<void()> work_of(const Kernel& kernel, double time, const LaunchConfig& config,
                              void** arguments) {
  if (kernel.code == nullptr) return [time] { pass(time); };
  return [run = kernel.code->prepared(kernel.name, config, arguments), time] {
    if (!run()) fake.failed = true;
    pass(time);
  };
}

double time_of(const Kernel& kernel, unsigned block) {
  return fake.kernel_ms ? fake.kernel_ms(kernel.text, block) : 0;
}

}  // namespace redfuser::device_tests

namespace {

Result refused(const std::string& problem) {
  if (problem.empty()) return kSuccess;
  fake.refusals.push_back(problem);
  return kInvalidValue;
}

// Whether memory that begins in an allocation ends in it, as the driver demands. Memory that tests
// hand out as a caller's is none of these.
bool stays_inside(DevicePointer address, size_t bytes) {
  auto block = fake.blocks.upper_bound(address);
  if (block == fake.blocks.begin()) return true;
  --block;
  const DevicePointer end = block->first + block->second;
  return address >= end || address + bytes <= end;
}

// Copies and fills: done at once, or recorded in a capture if the driver runs kernels.
Result done(StreamHandle handle, std::function<void()> work) {
  auto* stream = static_cast<Stream*>(handle);
  if (runs_kernels() && stream != nullptr && stream->capturing) {
    stream->record({std::move(work), {}, {}, {}});
  } else {
    work();
  }
  return kSuccess;
}

Result moved(StreamHandle stream, void* to, const void* from, size_t bytes) {
  pass(fake.copy_ms);
  return done(stream, [=] {
    if (fake.moves_bytes) std::memmove(to, from, bytes);
  });
}

// Of the kernel whose text this is. The fake compiler's code is the source.
int parameters_of(const std::string& text) {
  const size_t end = text.find(") {", text.rfind("__global__"));
  if (end == std::string::npos) return 2;
  const size_t open = text.rfind('(', end);
  if (open + 1 == end) return 0;
  const auto list = text.begin() + static_cast<std::ptrdiff_t>(open);
  return 1 +
         static_cast<int>(std::count(list, text.begin() + static_cast<std::ptrdiff_t>(end), ','));
}

// The text contains what a variable of the environment says.
bool named_in(const char* variable, const std::string& text) {
  const char* part = std::getenv(variable);
  return part != nullptr && text.find(part) != std::string::npos;
}

// Of __launch_bounds__ in the text.
int most_threads(const std::string& text) {
  constexpr char kBounds[] = "__launch_bounds__(";
  const size_t at = text.find(kBounds);
  return at == std::string::npos ? 1024 : std::stoi(text.substr(at + sizeof kBounds - 1));
}

}  // namespace

extern "C" {

FakeCuda* fake_cuda() { return &fake; }
// For tests in Python.
int fake_launches_on(StreamHandle stream) {
  const std::lock_guard lock(mutex);
  const auto is_on = [&](const FakeCuda::Launch& launch) { return launch.stream == stream; };
  return static_cast<int>(std::count_if(fake.launches.begin(), fake.launches.end(), is_on));
}
int fake_allocations() {
  const std::lock_guard lock(mutex);
  return fake.allocations;
}

Result cuInit(unsigned) { return fake.init_result; }
Result cuDriverGetVersion(int* version) { return *version = fake.driver_version, kSuccess; }
Result cuGetErrorName(Result, const char** name) { return *name = "CUDA_ERROR_FAKE", kSuccess; }
Result cuGetErrorString(Result, const char** text) { return *text = "a fake error", kSuccess; }
Result cuDeviceGetCount(int* count) { return *count = fake.devices, kSuccess; }
Result cuDeviceGet(int* device, int ordinal) { return *device = ordinal, kSuccess; }
Result cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(size));
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, int which, int) {
  switch (which) {
    case kComputeCapabilityMajor:
      *value = fake.architecture / 10;
      break;
    case kComputeCapabilityMinor:
      *value = fake.architecture % 10;
      break;
    case kMaxSharedMemoryPerBlockOptin:
      *value = most_shared(fake.architecture);
      break;
    case kClockRate:
    case kMemoryClockRate:
      *value = which == kClockRate ? 1980000 : 2619000;
      break;
    case kMemoryBusWidth:
      *value = 6144;  // bits
      break;
    case kL2CacheSize:
      *value = 50 << 20;
      break;
    default:
      *value = 132;
  }
  return kSuccess;
}
Result cuDeviceGetPCIBusId(char* address, int size, int) {
  std::strncpy(address, "0000:19:00.0", static_cast<size_t>(size));
  return kSuccess;
}
Result cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = fake.memory, kSuccess; }
Result cuDevicePrimaryCtxRetain(ContextHandle* context, int) {
  ++std::atomic_ref(fake.contexts);
  return *context = &fake, kSuccess;
}
Result cuDevicePrimaryCtxRelease_v2(int) {
  --std::atomic_ref(fake.contexts);
  return kSuccess;
}
Result cuCtxSetCurrent(ContextHandle) { return kSuccess; }
Result cuCtxSynchronize() { return kSuccess; }
Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  const std::lock_guard lock(mutex);
  *free = fake.memory - fake.used, *total = fake.memory;
  return kSuccess;
}

Result cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (fake.used + bytes > fake.memory) return kOutOfMemory;
  void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  // Kernels write nothing; tests read these bytes as results.
  constexpr size_t kCleared = size_t{1} << 20;
  if (block != nullptr && !runs_kernels()) std::memset(block, 0, std::min(bytes, kCleared));
  if (block != nullptr && runs_kernels()) std::memset(block, 0xff, bytes);
  *address = reinterpret_cast<DevicePointer>(block);
  fake.blocks[*address] = bytes;
  fake.used += bytes;
  ++fake.allocations;
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer address) {
  const std::lock_guard lock(mutex);
  fake.used -= fake.blocks.at(address);
  fake.blocks.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return kSuccess;
}
Result cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  const std::lock_guard lock(mutex);
  ++fake.pinned;
  return *address = std::malloc(bytes), kSuccess;
}
Result cuMemFreeHost(void* address) { return std::free(address), kSuccess; }

Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, StreamHandle stream) {
  const std::lock_guard lock(mutex);
  ++fake.to_device;
  return moved(stream, reinterpret_cast<void*>(to), from, bytes);
}
Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, StreamHandle stream) {
  const std::lock_guard lock(mutex);
  ++fake.to_host;
  return moved(stream, to, reinterpret_cast<void*>(from), bytes);
}
Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes,
                            StreamHandle stream) {
  const std::lock_guard lock(mutex);
  ++fake.on_device;
  if (!stays_inside(to, bytes) || !stays_inside(from, bytes)) return kInvalidValue;
  return moved(stream, reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
}
Result cuMemcpy2DAsync_v2(const CopyOfRows* given, StreamHandle stream) {
  const std::lock_guard lock(mutex);
  const CopyOfRows copy = *given;
  const bool from_host = copy.from.type == kHostMemory, to_host = copy.to.type == kHostMemory;
  ++(to_host ? fake.to_host : from_host ? fake.to_device : fake.on_device);
  pass(fake.copy_ms);
  const auto at = [](const RowsOfCopy& side, size_t row) {
    char* start = side.type == kHostMemory ? static_cast<char*>(side.host)
                                           : reinterpret_cast<char*>(side.device);
    return start + row * side.pitch;
  };
  return done(stream, [=] {
    for (size_t row = 0; fake.moves_bytes && row < copy.rows; ++row) {
      std::memcpy(at(copy.to, row), at(copy.from, row), copy.width);
    }
  });
}
Result cuMemsetD8Async(DevicePointer to, unsigned char byte, size_t bytes, StreamHandle stream) {
  const std::lock_guard lock(mutex);
  return done(stream, [=] {
    if (fake.moves_bytes) std::memset(reinterpret_cast<void*>(to), byte, bytes);
  });
}
Result cuMemsetD2D8Async(DevicePointer to, size_t pitch, unsigned char byte, size_t width,
                         size_t rows, StreamHandle stream) {
  const std::lock_guard lock(mutex);
  return done(stream, [=] {
    for (size_t row = 0; fake.moves_bytes && row < rows; ++row) {
      std::memset(reinterpret_cast<void*>(to + row * pitch), byte, width);
    }
  });
}

Result cuModuleLoadData(ModuleHandle* module, const void* image) {
  if (fake.module_result != kSuccess) return fake.module_result;
  auto* kernel = new Kernel;
  *module = kernel;
  kernel->code = load_code(image);
  if (kernel->code != nullptr) return kSuccess;
  kernel->text = static_cast<const char*>(image);
  kernel->hash = std::hash<std::string>()(kernel->text);
  kernel->parameters = parameters_of(kernel->text);
  kernel->state.most_threads = most_threads(kernel->text);
  if (fake.static_shared) kernel->state.static_shared = fake.static_shared(kernel->text);
  return kSuccess;
}
Result cuModuleUnload(ModuleHandle module) { return delete static_cast<Kernel*>(module), kSuccess; }
Result cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  auto& kernel = *static_cast<Kernel*>(module);
  *function = module;
  if (kernel.code == nullptr) return kSuccess;
  std::unique_ptr<Kernel>& made = kernel.functions[name];
  if (made == nullptr) {
    made = std::make_unique<Kernel>();
    made->code = kernel.code, made->name = name;
  }
  return *function = made.get(), kSuccess;
}
Result cuFuncSetAttribute(FunctionHandle function, int which, int value) {
  const std::lock_guard lock(mutex);
  FunctionState& state = static_cast<Kernel*>(function)->state;
  if (which == kNonPortableClusterSizeAllowed) state.large_clusters = value != 0;
  if (which != kMaxDynamicSharedSizeBytes) return kSuccess;
  const Result result = refused(shared_problem(value, state, fake.architecture));
  if (result == kSuccess) state.most_dynamic = value;
  return result;
}
Result cuFuncGetAttribute(int* value, int which, FunctionHandle function) {
  const FunctionState& state = static_cast<Kernel*>(function)->state;
  *value = which == kSharedSizeBytes ? state.static_shared : 0;
  return kSuccess;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, FunctionHandle function, int,
                                                   size_t) {
  *blocks = fake.crowded && fake.crowded(static_cast<Kernel*>(function)->text) ? 0 : 1;
  return kSuccess;
}
Result cuOccupancyMaxActiveClusters(int* clusters, FunctionHandle function, const LaunchConfig*) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(clusters, function, 0, 0);
}
Result cuTensorMapEncodeTiled(TensorMap* map, int dtype, unsigned rank, void* address,
                              const uint64_t* dims, const uint64_t* strides, const unsigned* box,
                              const unsigned* steps, int interleave, int swizzle, int, int) {
  const std::lock_guard lock(mutex);
  const MapArguments given{map,     dtype, rank,  address,    dims,
                           strides, box,   steps, interleave, swizzle};
  const Result result = refused(map_problem(given));
  if (result == kSuccess) write_map(given);
  return result;
}
Result cuTensorMapEncodeIm2col(TensorMap* map, int dtype, unsigned rank, void* address,
                               const uint64_t* dims, const uint64_t* strides, const int* lower,
                               const int* upper, unsigned channels, unsigned pixels,
                               const unsigned* steps, int interleave, int swizzle, int, int) {
  const std::lock_guard lock(mutex);
  const unsigned box[] = {channels, pixels};
  const MapArguments given{map, dtype, rank,       address, dims,  strides,
                           box, steps, interleave, swizzle, lower, upper};
  const Result result = refused(map_problem(given));
  if (result == kSuccess) write_map(given);
  return result;
}

Result cuLaunchKernelEx(const LaunchConfig* config, FunctionHandle function, void** arguments,
                        void**) {
  const std::lock_guard lock(mutex);
  Stream& stream = *static_cast<Stream*>(config->stream);
  const Kernel& kernel = *static_cast<Kernel*>(function);
  const Result result = refused(launch_problem(*config, kernel.state, fake.architecture));
  if (result != kSuccess) return result;
  if (named_in("FAKE_CUDA_FAILS", kernel.text)) return kLaunchFailed;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    const bool early = attribute.id == kAttributeProgrammaticSerialization;
    if (early && attribute.allowed != 0 && stream.capturing) fake.early.push_back(fake.recorded);
    if (attribute.id == kAttributePreferredCarveout) fake.carveouts.push_back(attribute.percent);
  }
  const double time = time_of(kernel, config->block[0]);
  const FakeCuda::Launch launch =
      launch_of(config->stream, kernel, config->grid, config->block[0], arguments);
  if (stream.capturing) {
    if (stream.lost) return kCaptureInvalidated;
    stream.record({work_of(kernel, time, *config, arguments),
                   launch,
                   {},
                   {config->attributes, config->attributes + config->attribute_count}});
    return ++fake.recorded, kSuccess;
  }
  if (time < 0) return kLaunchFailed;
  work_of(kernel, time, *config, arguments)();
  fake.launches.push_back(launch);
  return fake.failed ? kLaunchFailed : kSuccess;
}

// Work of a library on the device.
int fake_work(StreamHandle handle, const std::function<void()>* work) {
  const std::lock_guard lock(mutex);
  auto& stream = *static_cast<Stream*>(handle);
  if (stream.capturing) {
    stream.record({*work, FakeCuda::Launch{handle, {}, 0, 0}, {}, {}});
    return ++fake.recorded, kSuccess;
  }
  (*work)();
  pass(0);
  fake.launches.push_back({handle, {}, 0, 0});
  return kSuccess;
}

// A call of the product library.
int fake_product(StreamHandle stream, int proposal) {
  const std::lock_guard lock(mutex);
  const double time = fake.product_ms ? fake.product_ms(proposal) : 0;
  if (static_cast<Stream*>(stream)->capturing) {
    static_cast<Stream*>(stream)->record(
        {[time] { pass(time); }, FakeCuda::Launch{stream, {}, 0, proposal}, {}, {}});
    return ++fake.recorded, kSuccess;
  }
  pass(time);
  fake.launches.push_back({stream, {}, 0, proposal});
  return kSuccess;
}

}  // extern "C"
