// Programs whose sizes are known in a run only, on a GPU; skipped where there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "redfuser/compare.h"
#include "redfuser/device.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

struct Case {
  const char* name;
  const char* graph;
};

constexpr const char* kExperts =
    "g (float[n] expert, float[n, 32] x, float[32, 16] a, float[32, 16] b) => (float[n, 16] y) {"
    " zero = Constant<value = int64[1] {0}>() one = Constant<value = int64[1] {1}>()"
    " number = Cast<to = 7>(expert) first = Equal(number, zero) wa = NonZero(first) i = "
    "Squeeze(wa, zero)"
    " ra = Gather<axis = 0>(x, i) ya = MatMul(ra, a) pa = Softmax(ya)"
    " second = Equal(number, one) wb = NonZero(second) j = Squeeze(wb, zero)"
    " rb = Gather<axis = 0>(x, j) yb = MatMul(rb, b) pb = Softmax(yb)"
    " both = Concat<axis = 0>(pa, pb) order = Concat<axis = 0>(i, j)"
    " column = Unsqueeze(order, one) shape = Shape(both) index = Expand(column, shape)"
    " empty = ConstantOfShape<value = float[1] {0.0}>(shape)"
    " y = ScatterElements<axis = 0>(empty, index, both) }";

const Case kCases[] = {
    {"experts", kExperts},
    {"a_range",
     "g (float[n] expert, float[n, 32] x, float[32, 16] a, float[32, 16] b) => (float[m, 32] y) {"
     " none = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>()"
     " total = ReduceSum<keepdims = 0>(expert) sum = Cast<to = 7>(total) i = Range(none, sum, one) "
     "f = Cast<to = 1>(i)"
     " last = Constant<value = int64[1] {1}>() c = Unsqueeze(f, last)"
     " mean = ReduceMean<axes = [0], keepdims = 1>(x) t = Mul(c, mean) y = Softmax(t) }"},
    {"one_after_the_other",
     "g (float[n] expert, float[n, 32] x, float[32, 16] a, float[32, 16] b) => (float[k, 16] y) {"
     " zero = Constant<value = int64[1] {0}>()"
     " wa = NonZero(expert) i = Squeeze(wa, zero) ra = Gather<axis = 0>(x, i) ya = MatMul(ra, a)"
     " best = ArgMax<axis = 1, keepdims = 0>(ya) wb = NonZero(best) j = Squeeze(wb, zero)"
     " y = Gather<axis = 0>(ya, j) }"},
    {"a_branch",
     "g (float[n] expert, float[n, 32] x, float[32, 16] a, float[32, 16] b) => (float[m, 16] y) {"
     " zero = Constant<value = int64[1] {0}>() three = Constant<value = float {3.0}>()"
     " wa = NonZero(expert) i = Squeeze(wa, zero) sum = ReduceSum<keepdims = 0>(expert)"
     " odd = Mod<fmod = 1>(sum, three) some = Cast<to = 9>(odd)"
     " rows = If(some) <then_branch = t () => (float[m, 32] r) { r = Gather<axis = 0>(x, i) },"
     " else_branch = e () => (float[m, 32] r) { r = Neg(x) }>"
     " y = MatMul(rows, b) }"},
};

NamedTensors inputs_of(int64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  NamedTensors inputs = {{"expert", Tensor(DType::Float32, {rows})},
                         {"x", Tensor(DType::Float32, {rows, 32})},
                         {"a", Tensor(DType::Float32, {32, 16})},
                         {"b", Tensor(DType::Float32, {32, 16})}};
  for (auto& [name, tensor] : inputs) {
    if (name == "expert") {
      std::generate_n(tensor.as<float>(), rows, [&] { return static_cast<float>(random() % 2); });
    } else {
      std::generate_n(tensor.as<float>(), tensor.size(), [&] { return normal(random); });
    }
  }
  return inputs;
}

class CudaParts : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
    program_ = compile(Model::parse(std::string("<ir_version: 9, opset_import: [\"\" : 17]> ") +
                                    GetParam().graph));
  }

  static SessionOptions on(const char* device) {
    SessionOptions options;
    options.device = device;
    return options;
  }
  static void expect_equal(const NamedTensors& got, const NamedTensors& wanted) {
    for (const Comparison& comparison : compare(got, wanted, Tolerance())) {
      EXPECT_TRUE(comparison.passed) << describe(comparison);
    }
  }

  Program program_;
};

TEST_P(CudaParts, AgreeWithTheCpu) {
  Session cpu(program_, on("cpu")), gpu(program_, on("cuda"));
  for (const int64_t rows : {37, 5, 37, 64}) {
    const NamedTensors inputs = inputs_of(rows, static_cast<unsigned>(rows));
    const NamedTensors wanted = cpu.run(inputs);
    for (int run = 0; run < 3; ++run) expect_equal(gpu.run(inputs), wanted);
  }
}

// On the caller's memory, with an output in it.
TEST_P(CudaParts, RunOnTheDevice) {
  Session cpu(program_, on("cpu")), gpu(program_, on("cuda"));
  const NamedTensors inputs = inputs_of(41, 3);
  const NamedTensors wanted = cpu.run(inputs);
  const NamedDeviceTensors given = gpu.to_device(inputs);
  const Tensor& y = wanted.at("y");
  const DeviceTensor target = gpu.allocate(y.dtype(), y.dims());
  for (int run = 0; run < 3; ++run) {
    const NamedDeviceTensors results = gpu.enqueue(given, {{"y", target}});
    EXPECT_EQ(results.at("y").data, target.data);
    expect_equal(gpu.to_host(results), wanted);
  }
}

TEST_P(CudaParts, ShowEveryStep) {
  Session cpu(program_, on("cpu")), gpu(program_, on("cuda"));
  const NamedTensors inputs = inputs_of(50, 7);
  gpu.profile(true);
  gpu.run(inputs);
  EXPECT_EQ(gpu.step_times().size(), program_.steps().size());
  EXPECT_EQ(gpu.step_facts().size(), program_.steps().size());
  gpu.profile(false);
  cpu.keep_values(true);
  gpu.keep_values(true);
  cpu.run(inputs);
  gpu.run(inputs);
  expect_equal(gpu.kept_values(), cpu.kept_values());
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaParts, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser
