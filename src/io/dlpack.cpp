#include "redfuser/dlpack.h"

#include <memory>

#include "base/error.h"

namespace redfuser::dlpack {
namespace {

static_assert(sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 64 &&
              sizeof(ManagedTensorVersioned) == 80);

struct Type {
  DType dtype;
  TypeCode code;
  uint8_t bits;
};
constexpr Type kTypes[] = {
    {DType::Float32, kFloat, 32},
    {DType::Float64, kFloat, 64},
    {DType::Float16, kFloat, 16},
    {DType::BFloat16, kBfloat, 16},
    {DType::Int8, kInt, 8},
    {DType::Int16, kInt, 16},
    {DType::Int32, kInt, 32},
    {DType::Int64, kInt, 64},
    {DType::UInt8, kUInt, 8},
    {DType::UInt16, kUInt, 16},
    {DType::UInt32, kUInt, 32},
    {DType::UInt64, kUInt, 64},
    {DType::Bool, kBool, 8},
    {DType::Float8E4M3FN, kFloat8E4M3FN, 8},
    {DType::Float8E4M3FNUZ, kFloat8E4M3FNUZ, 8},
    {DType::Float8E5M2, kFloat8E5M2, 8},
    {DType::Float8E5M2FNUZ, kFloat8E5M2FNUZ, 8},
    {DType::Float8E8M0, kFloat8E8M0, 8},
    {DType::Float4E2M1, kFloat4E2M1, 4},
    {DType::Int4, kInt, 4},
    {DType::UInt4, kUInt, 4},
    {DType::Int2, kInt, 2},
    {DType::UInt2, kUInt, 2},
};

DType dtype_of(const DataType& type) {
  for (const Type& known : kTypes) {
    if (type.lanes == 1 && type.code == known.code && type.bits == known.bits) return known.dtype;
  }
  user_error("a DLPack tensor has the type code {} of {} bits and {} lanes, which is not supported",
             type.code, type.bits, type.lanes);
}

DataType type_of(DType dtype) {
  for (const Type& known : kTypes) {
    if (known.dtype == dtype) return {known.code, known.bits, 1};
  }
  user_error("DLPack has no tensors of {}", name_of(dtype));
}

bool is_host_device(const Device& device) {
  if (device.type == kCpu || device.type == kCudaHost) return true;
  if (device.type != kCuda && device.type != kCudaManaged) {
    user_error("a DLPack tensor lies on a device of type {}; CPU and CUDA are supported",
               device.type);
  }
  if (device.id != 0) {
    user_error("a DLPack tensor lies on GPU {}; sessions use GPU 0, the first visible one",
               device.id);
  }
  return false;
}

void check_row_major(const Tensor& tensor) {
  if (tensor.strides == nullptr) return;
  int64_t expected = 1;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) {
      user_error("a DLPack tensor has stride {} in dimension {}; row-major tensors have {}",
                 tensor.strides[i], i, expected);
    }
    expected *= tensor.shape[i];
    if (tensor.shape[i] == 0) return;
  }
}

template <typename Managed>
bool is_padded(const Managed& managed) {
  if constexpr (requires { managed.flags; }) return (managed.flags & kPadded) != 0;
  return false;
}

template <typename Managed>
DeviceTensor taken_over(Managed* managed) {
  RF_CHECK(managed != nullptr, "from_dlpack: no tensor");
  const Tensor& tensor = managed->tensor;
  DeviceTensor result;
  result.dtype = dtype_of(tensor.dtype);
  if (tensor.dtype.bits < 8 && !is_padded(*managed)) {
    user_error("a DLPack tensor of {} has several elements in a byte; one to a byte is supported",
               name_of(result.dtype));
  }
  result.on_host = is_host_device(tensor.device);
  check_row_major(tensor);
  result.dims.assign(tensor.shape, tensor.shape + tensor.ndim);
  result.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  result.owner = std::shared_ptr<void>(managed, [](void* pointer) {
    auto* mine = static_cast<Managed*>(pointer);
    if (mine->deleter != nullptr) mine->deleter(mine);
  });
  return result;
}

template <typename Managed>
struct Holder {
  Managed managed;
  Dims dims;
  std::shared_ptr<void> owner;
};

template <typename Managed>
Managed* handed_out(const DeviceTensor& tensor) {
  auto holder = std::make_unique<Holder<Managed>>();
  holder->dims = tensor.dims;
  holder->owner = tensor.owner;
  Tensor& out = holder->managed.tensor;
  out.data = tensor.data;
  out.device = {tensor.on_host ? kCpu : kCuda, 0};
  out.ndim = static_cast<int32_t>(holder->dims.size());
  out.dtype = type_of(tensor.dtype);
  if (out.dtype.bits < 8) {
    if constexpr (requires { holder->managed.flags; }) {
      holder->managed.flags = kPadded;
    } else {
      user_error("DLPack has no tensors of {} with a byte per element before version 1",
                 name_of(tensor.dtype));
    }
  }
  out.shape = holder->dims.data();
  holder->managed.context = holder.get();
  holder->managed.deleter = [](Managed* managed) {
    delete static_cast<Holder<Managed>*>(managed->context);
  };
  return &holder.release()->managed;
}

}  // namespace

DeviceTensor from_dlpack(ManagedTensor* tensor) { return taken_over(tensor); }

DeviceTensor from_dlpack(ManagedTensorVersioned* tensor) {
  RF_CHECK(tensor != nullptr, "from_dlpack: no tensor");
  if (tensor->version.major != 1) {
    user_error("a DLPack tensor is of version {}.{}; 1.x is supported", tensor->version.major,
               tensor->version.minor);
  }
  return taken_over(tensor);
}

ManagedTensor* to_dlpack(const DeviceTensor& tensor) { return handed_out<ManagedTensor>(tensor); }

ManagedTensorVersioned* to_dlpack_versioned(const DeviceTensor& tensor) {
  return handed_out<ManagedTensorVersioned>(tensor);
}

DeviceTensor on_host(const redfuser::Tensor& tensor) {
  DeviceTensor result;
  result.dtype = tensor.dtype();
  result.dims = tensor.dims();
  result.data = const_cast<void*>(tensor.data());
  result.on_host = true;
  result.owner = std::make_shared<redfuser::Tensor>(tensor);
  return result;
}

redfuser::Tensor to_tensor(const DeviceTensor& tensor) {
  if (!tensor.on_host) user_error("a tensor on the GPU is no host tensor; copy it first");
  return redfuser::Tensor::wrap(tensor.dtype, tensor.dims, tensor.data, tensor.owner);
}

}  // namespace redfuser::dlpack
