// Kernels have one name in machine code, the cache, traces and timelines.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fake_cuda/device_harness.h"

namespace redfuser::device_tests {
namespace {

namespace fs = std::filesystem;

class Names : public FakeGpu {
 protected:
  std::vector<std::string>& timeline() {
    void* library = dlopen(REDFUSER_FAKE_CUDA "/libfake_nvtx.so", RTLD_NOW);
    if (!library) throw std::runtime_error(dlerror());
    using Lines = std::vector<std::string>* (*)();
    return *reinterpret_cast<Lines>(dlsym(library, "fake_nvtx_lines"))();
  }
};

TEST_F(Names, AreTheSameEverywhere) {
  const fs::path folder = fs::path(testing::TempDir()) / "redfuser_names";
  fs::remove_all(folder);
  options.kernel_cache = KernelCacheMode::On;
  options.kernel_cache_folder = folder.string();
  Session session(compile(model(kExp)), options);
  session.profile(true);
  timeline().clear();
  session.run({{"x", vector_of(100)}});
  ASSERT_EQ(session.step_times().size(), 1u);
  ASSERT_EQ(session.step_times()[0].kernels.size(), 1u);
  const std::string name = session.step_times()[0].kernels[0].name;
  EXPECT_TRUE(name.starts_with("map_f32_")) << name;
  ASSERT_GE(timeline().size(), 2u);
  EXPECT_EQ(timeline()[0], "push " + name);
  EXPECT_EQ(timeline()[1], "pop");

  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_TRUE(entries[0].filename().string().starts_with(name + ".")) << entries[0];
  std::ifstream file(entries[0] / "meta.json");
  const nlohmann::json meta = nlohmann::json::parse(file);
  EXPECT_EQ(meta["kernel"], name);
  ASSERT_EQ(meta["uses"].size(), 1u);
  EXPECT_EQ(meta["uses"][0]["choice"], "map");
  EXPECT_EQ(meta["uses"][0]["parameters"][0], "p0 = x f32[n] (%1)") << meta.dump(1);
}

}  // namespace
}  // namespace redfuser::device_tests
