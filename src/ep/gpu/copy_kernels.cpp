// The kernels by which values pass between providers (gpu_copies.h).
#include <vector>

#include "ep/gpu/gpu_copies.h"
#include "ep/ort_graph.h"
#include "ep/value_types.h"

namespace redfuser::ep {
namespace {

class CopyKernel final : public OrtKernelImpl {
 public:
  explicit CopyKernel(Gpu& gpu) : OrtKernelImpl{}, gpu_(gpu) {
    ort_version_supported = gpu.api().version;
    Compute = [](OrtKernelImpl* kernel, OrtKernelContext* context) noexcept {
      return guarded(self(kernel).gpu_.api(), [&] { self(kernel).copy(*context); });
    };
    Release = [](OrtKernelImpl* kernel) noexcept { delete &self(kernel); };
  }

 private:
  static CopyKernel& self(OrtKernelImpl* kernel) { return *static_cast<CopyKernel*>(kernel); }

  void copy(OrtKernelContext& context) const {
    const Api& api = gpu_.api();
    const auto* from =
        answer<const OrtValue*>(api, &OrtApi::KernelContext_GetInput, &context, size_t{0});
    const Dims dims = tensor_type(api, *from).dims;
    auto* to = answer<OrtValue*>(api, &OrtApi::KernelContext_GetOutput, &context, size_t{0},
                                 dims.data(), dims.size());
    copy_tensor(gpu_, *from, *to,
                answer<void*>(api, &OrtApi::KernelContext_GetGPUComputeStream, &context));
  }

  Gpu& gpu_;
};

OrtStatus* make_kernel(void* gpu, const OrtKernelInfo*, OrtKernelImpl** kernel) noexcept {
  Gpu& own = *static_cast<Gpu*>(gpu);
  return guarded(own.api(), [&] { *kernel = new CopyKernel(own); });
}

std::vector<const OrtDataType*> tensor_types(const Api& api) {
  std::vector<const OrtDataType*> types;
  for (int type = 1; type <= ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0; ++type) {
    const auto element = static_cast<ONNXTensorElementDataType>(type);
    if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) continue;
    const OrtDataType* found = nullptr;
    OrtStatus* const status = api.ep->GetTensorDataType(element, &found);
    if (status != nullptr) {
      api.ort->ReleaseStatus(status);  // a type that this version does not have
    } else if (found != nullptr) {
      types.push_back(found);
    }
  }
  return types;
}

void add_kernel(Gpu& gpu, OrtKernelRegistry& registry, bool to_host) {
  const Api& api = gpu.api();
  OrtKernelDefBuilder* builder = nullptr;
  check(api, api.ep->CreateKernelDefBuilder(&builder));
  const Released<OrtKernelDefBuilder> owner(builder, api.ep->ReleaseKernelDefBuilder);
  const std::vector<const OrtDataType*> types = tensor_types(api);
  const char* const name = to_host ? "MemcpyToHost" : "MemcpyFromHost";
  check(api, api.ep->KernelDefBuilder_SetOperatorType(builder, name));
  check(api, api.ep->KernelDefBuilder_SetDomain(builder, ""));
  check(api, api.ep->KernelDefBuilder_SetSinceVersion(builder, 1, 1));
  check(api, api.ep->KernelDefBuilder_SetExecutionProvider(builder, kGpuProviderName));
  check(api, to_host ? api.ep->KernelDefBuilder_SetOutputMemType(builder, 0, OrtMemTypeCPUOutput)
                     : api.ep->KernelDefBuilder_SetInputMemType(builder, 0, OrtMemTypeCPUInput));
  check(api, api.ep->KernelDefBuilder_AddTypeConstraint(builder, "T", types.data(), types.size()));
  OrtKernelDef* definition = nullptr;
  check(api, api.ep->KernelDefBuilder_Build(builder, &definition));
  const Released<OrtKernelDef> kept(definition, api.ep->ReleaseKernelDef);
  check(api, api.ep->KernelRegistry_AddKernel(&registry, definition, make_kernel, &gpu));
}

}  // namespace

CopyKernels::CopyKernels(Gpu& gpu) : registry_(nullptr, gpu.api().ep->ReleaseKernelRegistry) {
  OrtKernelRegistry* registry = nullptr;
  check(gpu.api(), gpu.api().ep->CreateKernelRegistry(&registry));
  registry_.reset(registry);
  add_kernel(gpu, *registry, false);
  add_kernel(gpu, *registry, true);
}

}  // namespace redfuser::ep
