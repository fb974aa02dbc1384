// Kernels of the emulated driver (fake_cuda/kernels.h) run on the host's threads.
#include "fake_cuda/kernels.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "emulated_cuda/module.h"
#include "emulated_cuda/tensor_map.h"

namespace redfuser::device_tests {
namespace {

struct alignas(64) Argument {
  char bytes[256];
};

emulated_cuda::Launch launch_of(const cuda::LaunchConfig& config) {
  emulated_cuda::Launch launch;
  launch.grid = {config.grid[0], config.grid[1], config.grid[2]};
  launch.block = {config.block[0], config.block[1], config.block[2]};
  launch.shared_bytes = config.shared_bytes;
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const cuda::LaunchAttribute& attribute = config.attributes[i];
    if (attribute.id == cuda::kAttributeCooperative) launch.together = attribute.allowed != 0;
    if (attribute.id == cuda::kAttributeClusterDimension) {
      launch.cluster = attribute.cluster[0] * attribute.cluster[1] * attribute.cluster[2];
    }
  }
  return launch;
}

class EmulatedCode final : public KernelCode {
 public:
  explicit EmulatedCode(const void* image) : module_(image) {}

  std::function<bool()> prepared(const std::string& name, const cuda::LaunchConfig& config,
                                 void** arguments) override {
    const emulated_cuda::Module::Kernel& kernel = module_.kernel(name);
    std::vector<Argument> copies(kernel.sizes.size());
    for (size_t i = 0; i < copies.size(); ++i) {
      if (kernel.sizes[i] > sizeof(Argument)) std::abort();
      std::memcpy(copies[i].bytes, arguments[i], kernel.sizes[i]);
    }
    return [entry = kernel.entry, launch = launch_of(config), copies, name]() mutable {
      std::vector<void*> places;
      for (Argument& copy : copies) places.push_back(copy.bytes);
      const std::string problem = run_blocks(entry, launch, places.data());
      if (!problem.empty()) std::fprintf(stderr, "%s: %s\n", name.c_str(), problem.c_str());
      return problem.empty();
    };
  }

 private:
  emulated_cuda::Module module_;
};

}  // namespace

bool runs_kernels() { return true; }
std::shared_ptr<KernelCode> load_code(const void* image) {
  return std::make_shared<EmulatedCode>(image);
}

int first_architecture() {
  const char* given = std::getenv("EMULATED_CUDA_ARCHITECTURE");
  return given != nullptr ? std::atoi(given) : 90;
}

void write_map(const MapArguments& given) {
  emulated::TensorMapBits bits{};
  bits.address = reinterpret_cast<uint64_t>(given.address);
  bits.rank = static_cast<uint8_t>(given.rank), bits.swizzle = static_cast<uint8_t>(given.swizzle);
  for (unsigned i = 0; i < given.rank; ++i) {
    bits.dims[i] = given.dims[i];
    if (i > 0) bits.strides[i - 1] = given.strides[i - 1];
  }
  bits.windows = given.lower != nullptr;
  for (unsigned i = 0; i < (bits.windows ? 2 : given.rank); ++i) {
    bits.box[i] = static_cast<uint16_t>(given.box[i]);
  }
  for (unsigned i = 0; bits.windows && i < given.rank - 2; ++i) {
    bits.lower[i] = static_cast<int8_t>(given.lower[i]);
    bits.upper[i] = static_cast<int8_t>(given.upper[i]);
    bits.steps[i] = static_cast<int8_t>(given.steps[i + 1]);
  }
  std::memcpy(const_cast<void*>(given.map), &bits, sizeof bits);
}

}  // namespace redfuser::device_tests
