#include "ep/api.h"

#include <algorithm>
#include <charconv>
#include <new>

#include "base/error.h"

namespace redfuser::ep {

Api negotiate(const OrtApiBase& base) {
  const std::string text = base.GetVersionString();
  uint32_t major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, major);
  if (parsed.ptr != end) std::from_chars(parsed.ptr + 1, end, minor);
  if (major != 1 || minor < kOldestVersion) {
    user_error("RedFuser's execution provider needs ONNX Runtime 1.{} or a newer 1.x; this is {}",
               kOldestVersion, text);
  }
  Api api;
  api.version = std::min<uint32_t>(minor, ORT_API_VERSION);
  api.ort = base.GetApi(api.version);
  if (api.ort != nullptr) api.ep = api.ort->GetEpApi();
  if (api.ep == nullptr) {
    user_error("ONNX Runtime {} does not offer version {} of its interface", text, api.version);
  }
  return api;
}

void check(const Api& api, OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = api.ort->GetErrorMessage(status);
  api.ort->ReleaseStatus(status);
  throw UserError(message);
}

OrtStatus* status_of_exception(const OrtApi& ort) noexcept {
  try {
    throw;
  } catch (const UserError& error) {
    return ort.CreateStatus(ORT_INVALID_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    return ort.CreateStatus(ORT_RUNTIME_EXCEPTION, "RedFuser: memory is exhausted");
  } catch (const std::exception& error) {
    return ort.CreateStatus(ORT_EP_FAIL, error.what());
  } catch (...) {
    return ort.CreateStatus(ORT_EP_FAIL, "RedFuser: an unknown error");
  }
}

}  // namespace redfuser::ep
