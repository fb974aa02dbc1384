// The main loop of rows in several passes by itself: src/device/rows/multi_pass.cuh with functors
// written by hand.
#include <cmath>

#include "codegen/core/device_text.h"
#include "cuda/driver.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/rows/multi_pass.cuh"};

// What the functors share: rows of `length` floats from x to y, in groups of four.
constexpr const char* kRows = R"(
struct Rows {
  static constexpr int kWidth = 4;
  static constexpr bool kKeeps = Config::kChunks > 0;
  static constexpr bool kReduces[] = {true, true};
  struct Row {
    long long number, first;
  };
  struct Kept {
    float x[kWidth];
  };
  struct Group {
    float x[kWidth];
  };
  struct Values {
    float y[kWidth];
  };
  const float* x;
  float* y;
  long long length;
  __device__ Row row_of(long long number) const { return {number, number * length}; }
  template <typename Tag>
  __device__ void fetch(Tag, Group& group, const Row& row, long long first, long long valid,
                        bool vector) const {
    load_group<kWidth>(group.x, x, row.first + first, valid, vector);
  }
  __device__ void keep(Kept& kept, const Group& group, const Row&, long long, int v) const {
    kept.x[v] = group.x[v];
  }
  __device__ static float element(const Kept& kept, const Group& group, int v) {
    return kKeeps ? kept.x[v] : group.x[v];
  }
  __device__ void put(const Values& values, const Row& row, long long first, long long valid,
                      bool vector) const {
    store_group<kWidth>(y, row.first + first, values.y, valid, vector);
  }
  template <int P, typename Results>
  __device__ void settle(Phase<P>, Results&) const {}
};
)";

// Σ x: one result per row.
constexpr const char* kSum = R"(
struct Form : Rows {
  static constexpr bool kMapsBack = false;
  static constexpr int kPasses = 1, kLists[] = {0, 0};
  struct Results {
    double sum;
  };
  struct Tail {
    float sum;
  };
  __device__ void start(Phase<0>, Results& s, const Row&) const { s.sum = 0; }
  __device__ void lift(Phase<0>, Results& s, const Kept& kept, const Group& group, const Row&,
                       long long, int v, bool exists) const {
    if (exists) s.sum += element(kept, group, v);
  }
  template <typename Over>
  __device__ void reduce(Phase<0>, Results& s, const Over& over) const {
    s.sum = over.template all<SumOp>(s.sum, 0);
  }
  __device__ Tail finish(const Results& s, const Row&) const {
    return {static_cast<float>(s.sum)};
  }
  template <int Lanes>
  __device__ void write_rows(const Results&, const Row& row, const Tail& tail, int lane) const {
    if (lane == 0) y[row.number] = tail.sum;
  }
};
)";

// exp(x - m) / Σ exp(x - m) with the maximum m.
constexpr const char* kSoftmax = R"(
struct Form : Rows {
  static constexpr bool kMapsBack = true;
  static constexpr int kPasses = 2, kLists[] = {0, 0, 0};
  struct Results {
    float most, sum;
  };
  struct Tail {};
  __device__ void start(Phase<0>, Results& s, const Row&) const {
    s.most = -__uint_as_float(0x7f800000u);
  }
  __device__ void start(Phase<1>, Results& s, const Row&) const { s.sum = 0; }
  __device__ void lift(Phase<0>, Results& s, const Kept& kept, const Group& group, const Row&,
                       long long, int v, bool exists) const {
    if (exists) s.most = MaxOp::apply(s.most, element(kept, group, v));
  }
  __device__ void lift(Phase<1>, Results& s, const Kept& kept, const Group& group, const Row&,
                       long long, int v, bool exists) const {
    if (exists) s.sum += expf(element(kept, group, v) - s.most);
  }
  template <typename Over>
  __device__ void reduce(Phase<0>, Results& s, const Over& over) const {
    s.most = over.template all<MaxOp>(s.most, 0);
  }
  template <typename Over>
  __device__ void reduce(Phase<1>, Results& s, const Over& over) const {
    s.sum = over.template all<SumOp>(s.sum, 1);
  }
  __device__ Tail finish(const Results&, const Row&) const { return {}; }
  template <int Lanes>
  __device__ void write_rows(const Results&, const Row&, const Tail&, int) const {}
  __device__ void map(Values& values, const Results& s, const Kept& kept, const Group& group,
                      const Row&, const Tail&, long long, int v, bool) const {
    values.y[v] = expf(element(kept, group, v) - s.most) / s.sum;
  }
};
)";

// (x - mean) / sqrt(variance), and the positions of the two largest elements in the first pass.
constexpr const char* kLayerNorm = R"(
struct Form : Rows {
  static constexpr bool kMapsBack = true;
  static constexpr int kPasses = 2, kLists[] = {0, 1, 1};
  struct Results {
    float sum, squares, mean;
    Ranked<float> most[2];
  };
  struct Tail {
    float scale;
  };
  long long* places;
  __device__ void start(Phase<0>, Results& s, const Row&) const { s.sum = 0; }
  __device__ void start(Phase<1>, Results& s, const Row&) const { s.squares = 0; }
  __device__ void lift(Phase<0>, Results& s, const Kept& kept, const Group& group, const Row&,
                       long long, int v, bool exists) const {
    if (exists) s.sum += element(kept, group, v);
  }
  __device__ void lift(Phase<1>, Results& s, const Kept& kept, const Group& group, const Row&,
                       long long, int v, bool exists) const {
    const float d = element(kept, group, v) - s.mean;
    if (exists) s.squares += d * d;
  }
  template <typename Over>
  __device__ void reduce(Phase<0>, Results& s, const Over& over) const {
    s.sum = over.template all<SumOp>(s.sum, 0);
  }
  template <typename Over>
  __device__ void reduce(Phase<1>, Results& s, const Over& over) const {
    s.squares = over.template all<SumOp>(s.squares, 3);
  }
  __device__ void settle(Phase<0>, Results& s) const {
    s.mean = s.sum / static_cast<float>(length);
  }
  __device__ void settle(Phase<1>, Results&) const {}
  __device__ static RankedList<float, true, 2, 1> list(Picks<0>) { return {}; }
  __device__ static Ranked<float>* entries(Picks<0>, Results& s) { return s.most; }
  using Rows::element;
  __device__ Ranked<float> element(Picks<0>, const Kept& kept, const Group& group, const Row&,
                                   const Results&, long long at, int v) const {
    return {element(kept, group, v), at};
  }
  __device__ Tail finish(const Results& s, const Row&) const {
    return {rsqrtf(s.squares / static_cast<float>(length) + 1e-5f)};
  }
  template <int Lanes>
  __device__ void write_rows(const Results& s, const Row& row, const Tail&, int lane) const {
    if (lane < 2) places[row.number * 2 + lane] = lane == 0 ? s.most[0].index : s.most[1].index;
  }
  __device__ void map(Values& values, const Results& s, const Kept& kept, const Group& group,
                      const Row&, const Tail& tail, long long, int v, bool) const {
    values.y[v] = (element(kept, group, v) - s.mean) * tail.scale;
  }
};
)";

struct Loop {
  const char* name;
  int lanes, threads, chunks, cluster;
};

constexpr Loop kLoops[] = {
    {"warp", 32, 128, 4, 1},
    {"block", 256, 256, 4, 1},
    {"any_length", 512, 512, 0, 1},
    {"cluster", 256, 256, 4, 4},
};

std::string kernel(const Loop& loop, const char* form, bool places) {
  return codegen::device_prelude(kHeaders) +
         fmt::format(
             "struct Config {{\n"
             "  static constexpr int kLanes = {}, kThreads = {}, kChunks = {}, kCluster = {};\n"
             "  static constexpr bool kFull = false;\n}};\n",
             loop.lanes, loop.threads, loop.chunks, loop.cluster) +
         kRows + form +
         fmt::format(
             "extern \"C\" __global__ void __launch_bounds__({}) loop(const float* x, float* y,\n"
             "    long long* places, long long rows, long long length) {{\n"
             "  __shared__ __align__(16) char slots[4 * RowThreads<Config>::kSlotsBytes];\n"
             "  const Form form{{{{x, y, length}}{}}};\n"
             "  reduce_rows<Config>(form, slots, rows, length,\n"
             "                      length % 4 == 0 && aligned(x) && aligned(y));\n}}\n",
             loop.threads, places ? ", places" : "");
}

class MultiPassTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(MultiPassTemplate, CompilesWithFunctorsWrittenByHand) {
  Compiler* compiler = Compiler::find();
  if (compiler == nullptr) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const int architecture = GetParam().architecture;
  for (const Loop& loop : kLoops) {
    if (loop.cluster > 1 && architecture < 90) continue;
    for (const char* form : {kSum, kSoftmax, kLayerNorm}) {
      const std::string text = kernel(loop, form, form == kLayerNorm);
      const Compiler::Result result = compiler->compile(text, architecture);
      ASSERT_TRUE(result.compiled) << loop.name << "\n" << result.log;
      EXPECT_EQ(result.spilled, 0) << loop.name << "\n" << result.log;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, MultiPassTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

// What the functors compute, in double precision.
std::vector<double> expected_row(const char* form, const std::vector<float>& x) {
  const auto length = static_cast<double>(x.size());
  double sum = 0, most = -HUGE_VAL, squares = 0, weights = 0;
  for (const double value : x) sum += value, most = std::max(most, value);
  if (form == kSum) return {sum};
  const double mean = sum / length;
  for (const double value : x) {
    squares += (value - mean) * (value - mean);
    weights += std::exp(value - most);
  }
  std::vector<double> result;
  for (const double value : x) {
    result.push_back(form == kSoftmax ? std::exp(value - most) / weights
                                      : (value - mean) / std::sqrt(squares / length + 1e-5));
  }
  return result;
}

void expect_rows(const cuda::DevicePtr& device, const Loop& loop, const char* form, int length) {
  constexpr int kRowCount = 5;
  std::vector<float> x(static_cast<size_t>(kRowCount * length)), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7919) % 1013) / 128 - 3;
  const auto bytes = static_cast<int64_t>(x.size() * sizeof(float));
  const cuda::Buffer from(device, bytes, "x"), to(device, bytes, "y"),
      places(device, kRowCount * 2 * 8, "places");
  const int architecture = device->info().architecture;
  const cuda::Module module(device,
                            cuda::compile(kernel(loop, form, form == kLayerNorm),
                                          cuda::compile_options(architecture), "loop.cu"),
                            "loop");
  const cuda::Stream stream(device);
  cuda::LaunchShape shape;
  shape.block = static_cast<uint32_t>(loop.threads);
  shape.cluster = static_cast<uint32_t>(loop.cluster);
  shape.grid[0] = static_cast<uint32_t>(loop.lanes == 32 ? 2 : kRowCount * loop.cluster);
  const uint64_t arguments[] = {from.address(), to.address(), places.address(), kRowCount,
                                static_cast<uint64_t>(length)};
  stream.to_device(from.address(), x.data(), bytes);
  stream.launch({module.function("loop", loop.threads, 0, loop.cluster), shape, {}, arguments},
                "loop");
  stream.to_host(y.data(), to.address(), bytes);
  stream.synchronize();
  for (int row = 0; row < kRowCount; ++row) {
    const auto begin = x.begin() + static_cast<long>(row) * length;
    const std::vector<double> expected = expected_row(form, {begin, begin + length});
    for (size_t i = 0; i < expected.size(); ++i) {
      const double got = y[static_cast<size_t>(row) * expected.size() + i];
      ASSERT_NEAR(got, expected[i], 1e-5 * (1 + std::abs(expected[i])))
          << loop.name << ", row " << row << " of " << length << ", element " << i;
    }
  }
}

TEST(MultiPassOnGpu, AgreesWithDoublePrecision) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const cuda::DevicePtr device = cuda::Device::open();
  for (const Loop& loop : kLoops) {
    if (loop.cluster > 1 && device->info().architecture < 90) continue;
    for (const char* form : {kSum, kSoftmax, kLayerNorm}) {
      for (const int length : {2, 97, 400, 512}) expect_rows(device, loop, form, length);
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
