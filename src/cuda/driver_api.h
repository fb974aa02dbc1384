// The part of the CUDA driver's binary interface that is used, declared here so that building needs
// no CUDA. Names and values are those of NVIDIA's CUDA Driver API reference.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redfuser::cuda {

using Result = int;              // CUresult
using DevicePointer = uint64_t;  // CUdeviceptr
using ContextHandle = void*;     // CUcontext
using ModuleHandle = void*;      // CUmodule
using FunctionHandle = void*;    // CUfunction
using StreamHandle = void*;      // CUstream
using EventHandle = void*;       // CUevent
using GraphHandle = void*;       // CUgraph
using GraphNodeHandle = void*;
using GraphExecHandle = void*;  // CUgraphExec

inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInsufficientDriver = 35;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kNoBinaryForGpu = 209;

enum DeviceAttribute : int {
  kClockRate = 13,  // kHz
  kMultiprocessorCount = 16,
  kMemoryClockRate = 36,  // kHz
  kMemoryBusWidth = 37,   // bits
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
};

enum FunctionAttribute : int {
  kSharedSizeBytes = 1,
  kLocalSizeBytes = 3,
  kMaxDynamicSharedSizeBytes = 8,
  kNonPortableClusterSizeAllowed = 14,
};

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr unsigned kEventRecordExternal = 1;  // while capturing: a node of the graph
inline constexpr int kAttributeCooperative = 2;
inline constexpr int kAttributeClusterDimension = 4;
inline constexpr int kAttributeProgrammaticSerialization = 6;
inline constexpr int kAttributePreferredCarveout = 14;  // CUDA 12.8 has it

// CUgraphExecUpdateResultInfo
struct GraphUpdateResult {
  int result;
  GraphNodeHandle node, from;
};
static_assert(sizeof(GraphUpdateResult) == 24);

// CUlaunchAttribute
struct LaunchAttribute {
  int id;
  int padding;
  union {
    unsigned cluster[3];
    int allowed;
    unsigned percent;
    char bytes[64];
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

// CUlaunchConfig
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNodeParameters {
  FunctionHandle function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** arguments;
  void** extra;
  void* kernel;
  ContextHandle context;
};
static_assert(sizeof(KernelNodeParameters) == 72);

// CUtensorMap
struct alignas(64) TensorMap {
  char bytes[128];
};

// CUstreamUpdateCaptureDependencies_flags
inline constexpr unsigned kSetDependencies = 1;

// CUmemorytype
inline constexpr int kHostMemory = 1, kDeviceMemory = 2;

// CUDA_MEMCPY2D, whose fields for source and target are alike.
struct RowsOfCopy {
  size_t x, y;
  int type;
  void* host;
  DevicePointer device;
  void* array;
  size_t pitch;
};
struct CopyOfRows {
  RowsOfCopy from, to;
  size_t width, rows;
};
static_assert(sizeof(CopyOfRows) == 128);

// CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion and
// CUtensorMapFloatOOBfill.
inline constexpr int kMapFloat16 = 6, kMapBFloat16 = 9;
inline constexpr int kMapNotInterleaved = 0, kMapSwizzle128Bytes = 3, kMapPromote256Bytes = 3;
inline constexpr int kMapZerosOutside = 0;

// The driver's functions, by the name that the library exports.
struct DriverApi {
  Result (*cuInit)(unsigned);
  Result (*cuDriverGetVersion)(int*);
  Result (*cuGetErrorName)(Result, const char**);
  Result (*cuGetErrorString)(Result, const char**);
  Result (*cuDeviceGetCount)(int*);
  Result (*cuDeviceGet)(int*, int);
  Result (*cuDeviceGetName)(char*, int, int);
  Result (*cuDeviceGetAttribute)(int*, int, int);
  Result (*cuDeviceGetPCIBusId)(char*, int, int);
  Result (*cuDeviceTotalMem_v2)(size_t*, int);
  Result (*cuDevicePrimaryCtxRetain)(ContextHandle*, int);
  Result (*cuDevicePrimaryCtxRelease_v2)(int);
  Result (*cuCtxSetCurrent)(ContextHandle);
  Result (*cuCtxSynchronize)();
  Result (*cuMemGetInfo_v2)(size_t*, size_t*);
  Result (*cuMemAlloc_v2)(DevicePointer*, size_t);
  Result (*cuMemFree_v2)(DevicePointer);
  Result (*cuMemHostAlloc)(void**, size_t, unsigned);
  Result (*cuMemFreeHost)(void*);
  Result (*cuMemcpyDtoDAsync_v2)(DevicePointer, DevicePointer, size_t, StreamHandle);
  Result (*cuMemcpyHtoDAsync_v2)(DevicePointer, const void*, size_t, StreamHandle);
  Result (*cuMemcpyDtoHAsync_v2)(void*, DevicePointer, size_t, StreamHandle);
  Result (*cuMemcpy2DAsync_v2)(const CopyOfRows*, StreamHandle);
  Result (*cuMemsetD8Async)(DevicePointer, unsigned char, size_t, StreamHandle);
  Result (*cuMemsetD2D8Async)(DevicePointer, size_t, unsigned char, size_t, size_t, StreamHandle);
  Result (*cuStreamCreate)(StreamHandle*, unsigned);
  Result (*cuStreamDestroy_v2)(StreamHandle);
  Result (*cuStreamSynchronize)(StreamHandle);
  Result (*cuStreamWaitEvent)(StreamHandle, EventHandle, unsigned);
  Result (*cuStreamBeginCapture_v2)(StreamHandle, int);
  Result (*cuStreamEndCapture)(StreamHandle, GraphHandle*);
  Result (*cuStreamGetCaptureInfo_v2)(StreamHandle, int*, uint64_t*, GraphHandle*,
                                      const GraphNodeHandle**, size_t*);
  Result (*cuStreamUpdateCaptureDependencies)(StreamHandle, GraphNodeHandle*, size_t, unsigned);
  Result (*cuGraphInstantiateWithFlags)(GraphExecHandle*, GraphHandle, unsigned long long);
  Result (*cuGraphExecUpdate_v2)(GraphExecHandle, GraphHandle, GraphUpdateResult*);
  Result (*cuGraphExecKernelNodeSetParams_v2)(GraphExecHandle, GraphNodeHandle,
                                              const KernelNodeParameters*);
  Result (*cuGraphLaunch)(GraphExecHandle, StreamHandle);
  Result (*cuGraphExecDestroy)(GraphExecHandle);
  Result (*cuGraphDestroy)(GraphHandle);
  Result (*cuEventCreate)(EventHandle*, unsigned);
  Result (*cuEventDestroy_v2)(EventHandle);
  Result (*cuEventRecord)(EventHandle, StreamHandle);
  Result (*cuEventRecordWithFlags)(EventHandle, StreamHandle, unsigned);
  Result (*cuEventSynchronize)(EventHandle);
  Result (*cuEventElapsedTime)(float*, EventHandle, EventHandle);
  Result (*cuModuleLoadData)(ModuleHandle*, const void*);
  Result (*cuModuleUnload)(ModuleHandle);
  Result (*cuModuleGetFunction)(FunctionHandle*, ModuleHandle, const char*);
  Result (*cuFuncSetAttribute)(FunctionHandle, int, int);
  Result (*cuFuncGetAttribute)(int*, int, FunctionHandle);
  Result (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int*, FunctionHandle, int, size_t);
  Result (*cuOccupancyMaxActiveClusters)(int*, FunctionHandle, const LaunchConfig*);
  Result (*cuTensorMapEncodeTiled)(TensorMap*, int, unsigned, void*, const uint64_t*,
                                   const uint64_t*, const unsigned*, const unsigned*, int, int, int,
                                   int);
  Result (*cuTensorMapEncodeIm2col)(TensorMap*, int, unsigned, void*, const uint64_t*,
                                    const uint64_t*, const int*, const int*, unsigned, unsigned,
                                    const unsigned*, int, int, int, int);
  Result (*cuLaunchKernelEx)(const LaunchConfig*, FunctionHandle, void**, void**);
};

}  // namespace redfuser::cuda
