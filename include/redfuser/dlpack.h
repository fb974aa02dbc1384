// Tensors shared with other libraries through DLPack, without copies.
//
// The structures are those of DLPack's C interface, versions 0.x (DLManagedTensor) and 1.x
// (DLManagedTensorVersioned), declared here so that its header is not needed.
#pragma once

#include <cstdint>

#include "redfuser/device.h"
#include "redfuser/redfuser.h"

namespace redfuser::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0 = 14,
  kFloat4E2M1 = 17,
};

struct Device {
  int32_t type = kCpu;
  int32_t id = 0;
};

struct DataType {
  uint8_t code = kFloat;
  uint8_t bits = 32;
  uint16_t lanes = 1;
};

struct Tensor {
  void* data = nullptr;
  Device device;
  int32_t ndim = 0;
  DataType dtype;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // elements; null: row-major
  uint64_t byte_offset = 0;
};

struct ManagedTensor {  // DLManagedTensor
  Tensor tensor;
  void* context = nullptr;
  void (*deleter)(ManagedTensor*) = nullptr;
};

struct Version {
  uint32_t major = 1, minor = 1;
};
inline constexpr uint64_t kReadOnly = 1;
// Types below 8 bits take a byte per element, which the sign fills where there is one.
inline constexpr uint64_t kPadded = 4;

struct ManagedTensorVersioned {  // DLManagedTensorVersioned
  Version version;
  void* context = nullptr;
  void (*deleter)(ManagedTensorVersioned*) = nullptr;
  uint64_t flags = 0;
  Tensor tensor;
};

// Takes ownership: the tensor's deleter is called when the last copy of the result's owner is
// destroyed. UserError, without taking ownership, for strides that are not row-major, for devices
// and types that RedFuser does not support (of GPUs that is any but number 0), and for types below
// 8 bits that are not padded to bytes.
DeviceTensor from_dlpack(ManagedTensor* tensor);
DeviceTensor from_dlpack(ManagedTensorVersioned* tensor);

// A new structure that keeps the tensor's owner until its deleter is called. Memory that the
// session owns (outputs of enqueue that were not given) must be copied before its next run. Device
// 0 is the GPU that sessions use. UserError for types that DLPack has not: strings and lists, and
// without a version those below 8 bits.
ManagedTensor* to_dlpack(const DeviceTensor& tensor);
ManagedTensorVersioned* to_dlpack_versioned(const DeviceTensor& tensor);

// Conversions to and from host tensors, which share the data.
DeviceTensor on_host(const redfuser::Tensor& tensor);
redfuser::Tensor to_tensor(const DeviceTensor& tensor);

}  // namespace redfuser::dlpack
