// Launches that a driver would refuse: the rules themselves, and kernels at the edge of them.
#include <fmt/format.h>

#include <functional>

#include "cuda/driver.h"
#include "fake_cuda/device_harness.h"
#include "fake_cuda/launch_rules.h"

namespace redfuser::device_tests {
namespace {

struct LaunchCase {
  const char* what;
  std::function<void(cuda::LaunchConfig&, FunctionState&)> change;
  const char* problem;  // empty: it is launched
  int architecture = 90;
};

const LaunchCase kLaunches[] = {
    {"a block", [](auto&, auto&) {}, ""},
    {"no blocks", [](auto& c, auto&) { c.grid[1] = 0; }, "no blocks along dimension 1"},
    {"no threads", [](auto& c, auto&) { c.block[0] = 0; }, "no threads along dimension 0"},
    {"the largest grid", [](auto& c, auto&) { c.grid[0] = 0x7fffffff; }, ""},
    {"a larger one", [](auto& c, auto&) { c.grid[0] = 0x80000000; }, "is over 2147483647"},
    {"the widest grid", [](auto& c, auto&) { c.grid[1] = c.grid[2] = 65535; }, ""},
    {"a wider one", [](auto& c, auto&) { c.grid[2] = 65536; }, "is over 65535"},
    {"the largest block", [](auto& c, auto&) { c.block[0] = 1024; }, ""},
    {"a larger one", [](auto& c, auto&) { c.block[0] = 1025; }, "is over 1024"},
    {"threads in two dimensions", [](auto& c, auto&) { c.block[0] = 64, c.block[1] = 17; },
     "threads of a block 1088"},
    {"beyond the bounds", [](auto&, auto& f) { f.most_threads = 127; }, "launch bounds 128"},
    {"all registers", [](auto& c, auto& f) { c.block[0] = 512, f.registers = 128; }, ""},
    {"a unit more", [](auto& c, auto& f) { c.block[0] = 512, f.registers = 129; },
     "registers of a block 69632"},
    {"shared memory", [](auto& c, auto&) { c.shared_bytes = 49152; }, ""},
    {"beside static memory", [](auto& c, auto& f) { c.shared_bytes = 49152, f.static_shared = 1; },
     "dynamic shared memory 49152 is over 49151"},
    {"not asked for", [](auto& c, auto&) { c.shared_bytes = 49153; }, "is over 49152"},
    {"asked for", [](auto& c, auto& f) { c.shared_bytes = 50000, f.most_dynamic = 50000; }, ""},
    {"all that a block can have",
     [](auto& c, auto& f) {
       c.shared_bytes = 232448 - 512, f.static_shared = 512, f.most_dynamic = 232448;
     },
     ""},
    {"more",
     [](auto& c, auto& f) {
       c.shared_bytes = 232448 - 511, f.static_shared = 512, f.most_dynamic = 232448;
     },
     "dynamic and static shared memory 232449"},
    {"on a smaller GPU", [](auto& c, auto& f) { c.shared_bytes = f.most_dynamic = 170000; },
     "is over 166912", 80},
};

TEST(LaunchRules, OfLaunches) {
  for (const LaunchCase& c : kLaunches) {
    cuda::LaunchConfig config{{10, 1, 1}, {128, 1, 1}, 0, nullptr, nullptr, 0};
    FunctionState function;
    c.change(config, function);
    const std::string problem = launch_problem(config, function, c.architecture);
    EXPECT_EQ(problem.empty(), *c.problem == '\0') << c.what << ": " << problem;
    EXPECT_NE(problem.find(c.problem), std::string::npos) << c.what << ": " << problem;
  }
}

struct ClusterCase {
  unsigned grid, cluster;
  bool large;
  const char* problem;
  int architecture = 90;
};

TEST(LaunchRules, OfClusters) {
  const ClusterCase cases[] = {
      {16, 8, false, ""},
      {16, 0, false, "a cluster of no blocks"},
      {12, 8, false, "a grid of 12 blocks in clusters of 8"},
      {16, 16, false, "is over 8"},
      {16, 16, true, ""},
      {32, 32, true, "is over 16"},
      {16, 2, false, "before sm_90", 80},
  };
  for (const ClusterCase& c : cases) {
    cuda::LaunchAttribute attribute{};
    attribute.id = cuda::kAttributeClusterDimension;
    attribute.cluster[0] = c.cluster;
    attribute.cluster[1] = attribute.cluster[2] = 1;
    const cuda::LaunchConfig config{{c.grid, 1, 1}, {128, 1, 1}, 0, nullptr, &attribute, 1};
    FunctionState function;
    function.large_clusters = c.large;
    const std::string problem = launch_problem(config, function, c.architecture);
    EXPECT_EQ(problem.empty(), *c.problem == '\0') << problem;
    EXPECT_NE(problem.find(c.problem), std::string::npos) << problem;
  }
}

struct Map {
  alignas(64) char bytes[128 + 64];
  uint64_t dims[6] = {64, 100, 8, 1, 1, 1}, strides[5] = {128, 12800, 102400, 102400, 102400};
  unsigned box[6] = {64, 64, 1, 1, 1, 1}, steps[6] = {1, 1, 1, 1, 1, 1};
  int lower[3] = {-1, -1, -1}, upper[3] = {-1, -1, -1};
  void take_windows() {
    given.rank = 4, given.lower = lower, given.upper = upper;
    box[1] = 128;
  }
  MapArguments given{bytes,
                     cuda::kMapFloat16,
                     3,
                     reinterpret_cast<void*>(4096),
                     dims,
                     strides,
                     box,
                     steps,
                     cuda::kMapNotInterleaved,
                     cuda::kMapSwizzle128Bytes};
};

struct MapCase {
  std::function<void(Map&)> change;
  const char* problem;
};

TEST(LaunchRules, OfTensorMaps) {
  const MapCase cases[] = {
      {[](Map&) {}, ""},
      {[](Map& m) { m.given.rank = 0; }, "rank 0"},
      {[](Map& m) { m.given.rank = 5; }, ""},
      {[](Map& m) { m.given.rank = 6; }, "rank 6"},
      {[](Map& m) { m.given.map = m.bytes + 16; }, "a map that is not aligned"},
      {[](Map& m) { m.given.address = reinterpret_cast<void*>(4104); }, "an address"},
      {[](Map& m) { m.given.address = reinterpret_cast<void*>(4112); }, ""},
      {[](Map& m) { m.given.interleave = 2, m.given.address = reinterpret_cast<void*>(4112); },
       "an address"},
      {[](Map& m) { m.dims[1] = 0; }, "no elements along a dimension"},
      {[](Map& m) { m.dims[1] = uint64_t{1} << 32; }, ""},
      {[](Map& m) { m.dims[1] = (uint64_t{1} << 32) + 1; }, "a dimension"},
      {[](Map& m) { m.strides[0] = 136; }, "a stride of 136 bytes"},
      {[](Map& m) { m.strides[1] = uint64_t{1} << 40; }, "a stride"},
      {[](Map& m) { m.box[1] = 256; }, ""},
      {[](Map& m) { m.box[1] = 257; }, "a box 257 is over 256"},
      {[](Map& m) { m.box[2] = 0; }, "no elements along a box"},
      {[](Map& m) { m.box[0] = 12; }, "a box of 24 bytes"},
      {[](Map& m) { m.box[0] = 72; }, "a swizzled box 144 is over 128"},
      {[](Map& m) { m.box[0] = 72, m.given.swizzle = 0; }, ""},
      {[](Map& m) { m.steps[1] = 9; }, "an element stride 9"},
      {[](Map& m) { m.steps[1] = 0; }, "an element stride of 0"},
      {[](Map& m) { m.take_windows(); }, ""},
      {[](Map& m) { m.take_windows(), m.box[1] = 1025; }, "windows of a copy 1025 is over 1024"},
      {[](Map& m) { m.take_windows(), m.lower[1] = -129; }, "a corner at -129"},
      {[](Map& m) { m.take_windows(), m.upper[0] = 128; }, "a corner at 128"},
      {[](Map& m) { m.take_windows(), m.given.rank = 5, m.lower[2] = -17; }, "a corner at -17"},
      {[](Map& m) { m.take_windows(), m.upper[0] = -102; }, "no windows along a dimension"},
      {[](Map& m) { m.take_windows(), m.given.rank = 2; }, "windows of rank 2"},
  };
  for (const MapCase& c : cases) {
    Map map;
    c.change(map);
    const std::string problem = map_problem(map.given);
    EXPECT_EQ(problem.empty(), *c.problem == '\0') << problem;
    EXPECT_NE(problem.find(c.problem), std::string::npos) << problem;
  }
}

using Launch = FakeGpu;

// With every size of dynamic shared memory about the one that every launch may have.
TEST_F(Launch, AsksForDynamicAndStaticSharedMemory) {
  const cuda::DevicePtr device = cuda::Device::open();
  const cuda::Stream stream(device);
  const std::vector<uint64_t> arguments = {0, 0};
  for (const int static_bytes : {0, 16, 1024, 48 * 1024}) {
    gpu->static_shared = [=](const std::string&) { return static_bytes; };
    for (const int shared : {0, 16, 47 * 1024, 49152 - 16, 49152, 49168, 100000, 180000}) {
      const cuda::Module module(device, "text", "kernel");
      const cuda::FunctionHandle function = module.function("kernel", 32, shared, 1);
      cuda::LaunchShape shape;
      shape.shared_bytes = static_cast<uint32_t>(shared);
      stream.launch({function, shape, {}, arguments}, "kernel");
      EXPECT_TRUE(gpu->refusals.empty()) << static_bytes << " + " << shared;
    }
  }
}

// A sum of rows whose pieces fill 48 KB of shared memory, and no more.
TEST_F(Launch, ARowOfFortyEightKilobytes) {
  constexpr const char* kGraph =
      "g (float16[333, 11008] a, float16[333, 11008] b, float16[11008] g) => "
      "(float16[333, 11008] y) { x = Add(a, b)"
      " y = RMSNormalization<axis = -1>(x, g) }";
  gpu->static_shared = [](const std::string&) { return 128; };
  Session session(
      compile(Model::parse(std::string("<ir_version: 9, opset_import: [\"\" : 23]> ") + kGraph)),
      options);
  NamedTensors inputs = {{"a", Tensor(DType::Float16, {333, 11008})},
                         {"b", Tensor(DType::Float16, {333, 11008})},
                         {"g", Tensor(DType::Float16, {11008})}};
  session.run(inputs);
  EXPECT_TRUE(gpu->refusals.empty());
  EXPECT_EQ(gpu->launches.size(), 1u);
}

}  // namespace
}  // namespace redfuser::device_tests
