// Sessions on the fake GPU of fake_cuda.h.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "fake_cuda/fake_cuda.h"
#include "redfuser/device.h"
#include "redfuser/redfuser.h"

namespace redfuser::device_tests {

class FakeGpu : public testing::Test {
 protected:
  FakeGpu() {
    void* library = dlopen(REDFUSER_FAKE_CUDA "/libcuda.so.1", RTLD_NOW);
    if (!library) throw std::runtime_error(dlerror());
    gpu = reinterpret_cast<GetFakeCuda>(dlsym(library, "fake_cuda"))();
    const auto blocks = gpu->blocks;
    const size_t used = gpu->used;
    *gpu = FakeCuda();
    gpu->blocks = blocks, gpu->used = used;
    options.device = "cuda";
    options.kernel_cache = KernelCacheMode::Off;
  }

  static Model model(const std::string& graph) {
    return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
  }

  // The message of a UserError; a test failure without one.
  template <typename Body>
  static std::string error_of(const Body& body) {
    try {
      body();
    } catch (const UserError& error) {
      return error.what();
    }
    ADD_FAILURE() << "no UserError";
    return "";
  }

  static void expect_mentions(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
  }

  FakeCuda* gpu = nullptr;
  SessionOptions options;
};

inline constexpr const char* kExp = "g (float[n] x) => (float[n] y) { y = Exp(x) }";

inline Tensor vector_of(int64_t n) {
  Tensor tensor(DType::Float32, {n});
  for (int64_t i = 0; i < n; ++i) tensor.as<float>()[i] = static_cast<float>(i);
  return tensor;
}

}  // namespace redfuser::device_tests
