// ONNX Runtime's C interface: its version, its errors and ours.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <string>

namespace redfuser::ep {

// The interface of the ONNX Runtime that has loaded the library.
struct Api {
  const OrtApi* ort = nullptr;
  const OrtEpApi* ep = nullptr;
  // The minor version of the interface in use, which structures given to ONNX Runtime carry: that
  // of the headers, or the older one of the ONNX Runtime at hand.
  uint32_t version = 0;
};

inline constexpr uint32_t kOldestVersion = 23;  // 1.23, the first with what a provider needs
// Whose tensors are in the CPU's memory, and in that of a GPU.
inline constexpr char kProviderName[] = "RedFuserExecutionProvider";
inline constexpr char kGpuProviderName[] = "RedFuserCudaExecutionProvider";
inline constexpr uint32_t kOldestGpuVersion = 24;  // the first that copies between providers

// UserError, with both versions, for an ONNX Runtime that is not of the series 1 from 1.23 on.
Api negotiate(const OrtApiBase& base);

// Throws UserError with the message of a status that is not null, and releases it.
void check(const Api& api, OrtStatus* status);

// A status for the exception that is being handled: its message, and a code by its class.
OrtStatus* status_of_exception(const OrtApi& ort) noexcept;

// Runs an action for ONNX Runtime, to which no exception may go.
template <typename Action>
OrtStatus* guarded(const Api& api, const Action& action) noexcept {
  try {
    action();
    return nullptr;
  } catch (...) {
    return status_of_exception(*api.ort);
  }
}

// An object of ONNX Runtime's that its user releases.
template <typename T>
using Released = std::unique_ptr<T, void(ORT_API_CALL*)(T*)>;

}  // namespace redfuser::ep
