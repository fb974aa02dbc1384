#include "ep/gpu/gpu_copies.h"

#include "ep/ort_graph.h"

namespace redfuser::ep {

bool is_of_gpu(const Api& api, const OrtMemoryDevice* device) {
  return api.ep->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_GPU &&
         api.ep->MemoryDevice_GetVendorId(device) == kNvidia &&
         api.ep->MemoryDevice_GetMemoryType(device) == OrtDeviceMemoryType_DEFAULT;
}

bool is_of_gpu(const Api& api, const OrtValue& value) {
  return is_of_gpu(api, api.ep->Value_GetMemoryDevice(&value));
}

void copy_tensor(Gpu& gpu, const OrtValue& from, OrtValue& to, cuda::StreamHandle stream) {
  const Api& api = gpu.api();
  const cuda::DevicePtr& device = gpu.device();
  if (stream == nullptr) device->synchronize();
  const cuda::Stream on(device, stream);
  const auto bytes =
      static_cast<int64_t>(answer<size_t>(api, &OrtApi::GetTensorSizeInBytes, &from));
  const auto* source = answer<const void*>(api, &OrtApi::GetTensorData, &from);
  auto* target = answer<void*>(api, &OrtApi::GetTensorMutableData, &to);
  const bool from_gpu = is_of_gpu(api, from), to_gpu = is_of_gpu(api, to);
  if (from_gpu && to_gpu) {
    on.copy(reinterpret_cast<uint64_t>(target), reinterpret_cast<uint64_t>(source), bytes);
  } else if (to_gpu) {
    on.to_device(reinterpret_cast<uint64_t>(target), source, bytes);
  } else {
    on.to_host(target, reinterpret_cast<uint64_t>(source), bytes);
  }
  if (stream == nullptr || !(from_gpu && to_gpu)) on.synchronize();
}

GpuCopies::GpuCopies(Gpu& gpu) : OrtDataTransferImpl{}, gpu_(gpu) {
  ort_version_supported = gpu.api().version;
  Release = [](OrtDataTransferImpl* own) noexcept { delete &self(own); };
  CanCopy = [](const OrtDataTransferImpl* own, const OrtMemoryDevice* from,
               const OrtMemoryDevice* to) noexcept {
    const Api& api = static_cast<const GpuCopies*>(own)->gpu_.api();
    const auto is_known = [&](const OrtMemoryDevice* device) {
      return is_of_gpu(api, device) ||
             api.ep->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_CPU;
    };
    return is_known(from) && is_known(to) && (is_of_gpu(api, from) || is_of_gpu(api, to));
  };
  CopyTensors = [](OrtDataTransferImpl* own, const OrtValue** from, OrtValue** to,
                   OrtSyncStream** streams, size_t count) noexcept {
    const Api& api = self(own).gpu_.api();
    return guarded(api, [&] {
      for (size_t i = 0; i < count; ++i) {
        OrtSyncStream* stream = streams != nullptr ? streams[i] : nullptr;
        copy_tensor(self(own).gpu_, *from[i], *to[i],
                    stream != nullptr ? api.ort->SyncStream_GetHandle(stream) : nullptr);
      }
    });
  };
}

}  // namespace redfuser::ep
