// Errors of sessions when the GPU, its driver, its memory or a kernel fails.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fake_cuda/device_harness.h"
#include "redfuser/error.h"

namespace redfuser::device_tests {
namespace {

namespace fs = std::filesystem;

class Errors : public FakeGpu {
 protected:
  std::string start_error() {
    return error_of([&] { Session(compile(model(kExp)), options); });
  }
};

TEST_F(Errors, AConstantPositionThatIsOutOfRange) {
  Session session(compile(model("g (float[n, 3] x) => (float[2, 3] y) {"
                                " ids = Constant<value_ints = [0, 5]>() y = Gather(x, ids) }")),
                  options);
  for (const int64_t rows : {8, 8, 4, 4, 6, 4}) {
    const NamedTensors inputs = {{"x", vector_of(3 * rows).reshaped({rows, 3})}};
    if (rows > 5) {
      session.run(inputs);
    } else {
      expect_mentions(error_of([&] { session.run(inputs); }), "index 5 is out of range");
    }
  }
}

TEST_F(Errors, NoGpu) {
  gpu->devices = 0;
  expect_mentions(start_error(), "shows no GPU");
  options.device = "auto";
  EXPECT_EQ(Session(compile(model(kExp)), options).device(), "cpu");
}

TEST_F(Errors, ADriverThatDoesNotStart) {
  gpu->init_result = 35;  // insufficient driver
  expect_mentions(start_error(), "no usable GPU: a fake error (CUDA_ERROR_FAKE)");
}

TEST_F(Errors, TooOldAGpu) {
  gpu->architecture = 75;
  expect_mentions(start_error(), "Fake GPU has compute capability 7.5; --device cuda needs 8.0");
}

TEST_F(Errors, TooOldADriverForNvrtc) {
  gpu->module_result = 209;  // no binary for the GPU
  gpu->driver_version = 12040;
  const std::string text = start_error();
  expect_mentions(text, "the CUDA driver (for CUDA 12.4) does not take the kernel");
  expect_mentions(text, "is NVRTC newer than the driver?");
}

TEST_F(Errors, OutOfMemory) {
  gpu->memory = gpu->used + (1 << 20);
  Session session(compile(model(kExp)), options);
  session.run({{"x", vector_of(1000)}});
  const size_t launched = gpu->launches.size();
  const std::string text = error_of([&] { session.run({{"x", vector_of(1 << 20)}}); });
  expect_mentions(text, "out of GPU memory: the arena of tensors needs 8388608 bytes");
  EXPECT_EQ(gpu->launches.size(), launched);
  session.run({{"x", vector_of(1000)}});
}

TEST_F(Errors, AboveTheMemoryLimitNothingIsLaunched) {
  options.memory_limit = 1 << 20;
  Session session(compile(model(kExp)), options);
  const std::string text = error_of([&] { session.run({{"x", vector_of(1 << 20)}}); });
  expect_mentions(text, "above the limit of 1048576");
  EXPECT_TRUE(gpu->launches.empty());
  EXPECT_EQ(gpu->to_device, 0);
  session.run({{"x", vector_of(1000)}});
  EXPECT_EQ(session.peak_bytes(), 2 * 4096);
}

TEST_F(Errors, WeightsAboveTheMemoryLimit) {
  const Program program = compile(
      model("g (float[n, 1] x) => (float[n, 4] y)<float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }"));
  options.memory_limit = 100;
  expect_mentions(error_of([&] { Session(program, options); }), "above the limit of 100");
}

TEST_F(Errors, AKernelThatDoesNotCompile) {
  const fs::path folder = fs::path(testing::TempDir()) / "redfuser_failed_kernels";
  fs::remove_all(folder);
  options.kernel_cache = KernelCacheMode::On;
  options.kernel_cache_folder = folder.string();
  setenv("FAKE_NVRTC_FAILS", "1", 1);
  const std::string text = start_error();
  unsetenv("FAKE_NVRTC_FAILS");
  expect_mentions(text, "a kernel does not compile (NVRTC_ERROR_COMPILATION); its source is ");
  expect_mentions(text, "error: a fake error");
  const size_t start = text.find(folder.string());
  ASSERT_NE(start, std::string::npos) << text;
  const std::string path = text.substr(start, text.find(": ", start) - start);
  EXPECT_TRUE(fs::exists(path)) << path;
  Session(compile(model(kExp)), options);
}

TEST_F(Errors, ACacheThatCannotBeWrittenIsOneWarning) {
  const fs::path file = fs::path(testing::TempDir()) / "redfuser_no_folder";
  std::ofstream(file) << "a file";
  options.kernel_cache = KernelCacheMode::On;
  options.kernel_cache_folder = file.string();
  Session session(compile(model(kExp)), options);
  ASSERT_EQ(session.notes().size(), 2u);
  expect_mentions(session.notes()[0], "kernels: 1 compiled in ");
  expect_mentions(session.notes()[0], " s, 0 from the cache");
  expect_mentions(session.notes()[1], "warning: the kernel cache cannot be written");
  session.run({{"x", vector_of(10)}});
}

TEST_F(Errors, ADamagedEntryIsRebuiltWithOneWarning) {
  const fs::path folder = fs::path(testing::TempDir()) / "redfuser_damaged";
  fs::remove_all(folder);
  options.kernel_cache = KernelCacheMode::On;
  options.kernel_cache_folder = folder.string();
  { const Session first(compile(model(kExp)), options); }
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ofstream(entry.path() / "kernel.cubin") << "damaged";
  }
  {
    const Session second(compile(model(kExp)), options);
    ASSERT_EQ(second.notes().size(), 2u);
    expect_mentions(second.notes()[1], "kernel.cubin is damaged");
  }
  const Session third(compile(model(kExp)), options);
  ASSERT_EQ(third.notes().size(), 1u);
  expect_mentions(third.notes()[0], "0 compiled");
  expect_mentions(third.notes()[0], "1 from the cache");
}

}  // namespace
}  // namespace redfuser::device_tests
