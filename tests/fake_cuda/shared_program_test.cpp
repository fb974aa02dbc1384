// Sessions of one program share its GPU side where their options allow it, and only there.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "fake_cuda/device_harness.h"

namespace redfuser::device_tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScale =
    "g (float[n, 4] x) => (float[n, 4] y)<float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }";

class SharedProgram : public FakeGpu {
 protected:
  SharedProgram() {
    folder_ = fs::path(testing::TempDir()) / fmt::format("redfuser_shared_{}", getpid());
    fs::remove_all(folder_);
    options.kernel_cache = KernelCacheMode::On;
    options.kernel_cache_folder = folder("first");
  }
  ~SharedProgram() override { fs::remove_all(folder_); }

  std::string folder(const char* name) const { return (folder_ / name).string(); }
  int64_t entries(const char* name) const {
    if (!fs::exists(folder_ / name)) return 0;
    return std::distance(fs::directory_iterator(folder_ / name), {});
  }
  // How often the weights were copied to the GPU for the session.
  int uploads(const Program& program, const SessionOptions& with) const {
    const int before = gpu->to_device;
    const Session session(program, with);
    return gpu->to_device - before;
  }

  fs::path folder_;
};

TEST_F(SharedProgram, IsSharedWhileTheOptionsAgree) {
  const Program program = compile(model(kScale));
  const Session first(program, options);
  SessionOptions second = options;
  second.threads = 3;
  second.kept_shapes = 1;
  second.memory_limit = 1 << 20;
  EXPECT_EQ(uploads(program, second), 0);
  EXPECT_EQ(uploads(compile(model(kScale)), options), 1);
}

TEST_F(SharedProgram, ASecondFolderOfKernelsIsFilled) {
  const Program program = compile(model(kScale));
  const Session first(program, options);
  EXPECT_EQ(entries("first"), 1);
  options.kernel_cache_folder = folder("second");
  const Session second(program, options);
  EXPECT_EQ(entries("second"), 1);
}

TEST_F(SharedProgram, TheModeOfTheCacheIsTheSessions) {
  const Program program = compile(model(kScale));
  for (const KernelCacheMode mode : {KernelCacheMode::Off, KernelCacheMode::ReadOnly}) {
    SessionOptions other = options;
    other.kernel_cache = mode;
    other.kernel_cache_folder = folder("third");
    const Session without(program, other);
    EXPECT_EQ(entries("third"), 0);
    other.kernel_cache = KernelCacheMode::On;
    const Session with(program, other);
    EXPECT_EQ(entries("third"), 1);
    fs::remove_all(folder_);
  }
  // Entries of the cache are not read.
  const Session first(program, options);
  options.kernel_cache = KernelCacheMode::Off;
  const Session second(program, options);
  expect_mentions(second.notes().at(0), "kernels: 1 compiled in ");
}

TEST_F(SharedProgram, EverySessionHasItsMemoryLimit) {
  const Program program = compile(model(kScale));
  const Session first(program, options);
  options.memory_limit = 15;
  expect_mentions(error_of([&] { Session(program, options); }),
                  "the model's weights take 256 bytes of GPU memory, above the limit of 15");
  options.memory_limit = 1 << 20;
  Session(program, options).run({{"x", Tensor(DType::Float32, {5, 4})}});
}

TEST_F(SharedProgram, AnotherFamilyOfKernelsIsAnotherProgram) {
  const Program program = compile(model(kScale));
  const Session first(program, options);
  setenv("REDFUSER_KERNELS", "portable", 1);
  const int copied = uploads(program, options);
  unsetenv("REDFUSER_KERNELS");
  EXPECT_EQ(copied, 1);
}

}  // namespace
}  // namespace redfuser::device_tests
