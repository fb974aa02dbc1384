// What the shared library exports.
#include <algorithm>

#include "base/error.h"
#include "ep/factory.h"

namespace {

using redfuser::ep::Factory;

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
    const redfuser::ep::Api api = redfuser::ep::negotiate(*base);
    any = api.ort;
    if (max_factories == 0) redfuser::user_error("ONNX Runtime has no room for a factory");
    factories[0] = new Factory(api);
    *num_factories = 1;
    return nullptr;
  } catch (...) {
    if (any == nullptr) any = any_interface(*base);
    // A status needs the interface. Without it ONNX Runtime gets zero factories.
    return any == nullptr ? nullptr : redfuser::ep::status_of_exception(*any);
  }
}

__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}

}  // extern "C"
