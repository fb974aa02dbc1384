// What the shared library exports.
#include <algorithm>

#include "base/error.h"
#include "ep/factory.h"
#include "ep/gpu/gpu_factory.h"

namespace {

using namespace redfuser::ep;

// An ONNX Runtime of any version can make a status, so that it can report that it is too old.
const OrtApi* any_interface(const OrtApiBase& base) {
  for (uint32_t version = ORT_API_VERSION; version > 0; --version) {
    if (const OrtApi* ort = base.GetApi(version)) return ort;
  }
  return nullptr;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) OrtStatus* CreateEpFactories(
    const char* /*registered_name*/, const OrtApiBase* base, const OrtLogger* /*default_logger*/,
    OrtEpFactory** factories, size_t max_factories, size_t* num_factories) {
  const OrtApi* any = nullptr;
  try {
    *num_factories = 0;
    const Api api = negotiate(*base);
    any = api.ort;
    const size_t count = api.version >= kOldestGpuVersion ? 2 : 1;
    if (max_factories < count) redfuser::user_error("ONNX Runtime has no room for factories");
    factories[0] = new CpuFactory(api);
    if (count == 2) factories[1] = new GpuFactory(api);
    *num_factories = count;
    return nullptr;
  } catch (...) {
    if (any == nullptr) any = any_interface(*base);
    // A status needs the interface. Without it ONNX Runtime gets zero factories.
    return any == nullptr ? nullptr : status_of_exception(*any);
  }
}

__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}

}  // extern "C"
