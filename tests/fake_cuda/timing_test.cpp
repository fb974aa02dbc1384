// What a session says of its times: copies, kernels and the GPU's state, each apart.
#include <algorithm>

#include "fake_cuda/device_harness.h"

namespace redfuser::device_tests {
namespace {

constexpr double kKernelMs = 7, kCopyMs = 3;
constexpr const char* kTwoInputs =
    "g (float[n, k] x, float[k, m] w) => (float[n, m] y, float[n, k] z) "
    "{ p = MatMul(x, w) y = Exp(p) z = Tanh(x) }";

class Timing : public FakeGpu {
 protected:
  Timing() {
    gpu->kernel_ms = [](const std::string&, unsigned) { return kKernelMs; };
    gpu->product_ms = [](int) { return kKernelMs; };
    gpu->copy_ms = kCopyMs;
  }

  NamedTensors inputs_ = {{"x", Tensor(DType::Float32, {64, 32})},
                          {"w", Tensor(DType::Float32, {32, 16})}};
};

TEST_F(Timing, CopiesAndKernelsApart) {
  Session session(compile(model(kTwoInputs)), options);
  session.run(inputs_);
  EXPECT_FALSE(session.run_timing());
  session.time_runs(true);
  for (int run = 0; run < 3; ++run) {  // the graph is recorded in the second
    session.run(inputs_);
    const auto timing = session.run_timing();
    ASSERT_TRUE(timing);
    EXPECT_DOUBLE_EQ(timing->host_to_device_us, 2 * kCopyMs * 1e3);
    EXPECT_DOUBLE_EQ(timing->compute_us, session.launches() * kKernelMs * 1e3);
    EXPECT_DOUBLE_EQ(timing->device_to_host_us, 2 * kCopyMs * 1e3);
    EXPECT_GE(timing->enqueue_us, 0);
  }
  EXPECT_GT(gpu->replays, 0);
  session.time_runs(false);
  session.run(inputs_);
  EXPECT_FALSE(session.run_timing());
}

TEST_F(Timing, ResidentTensorsAreNotCopied) {
  Session session(compile(model(kTwoInputs)), options);
  session.time_runs(true);
  const NamedDeviceTensors inputs = session.to_device(inputs_);
  const int before = gpu->to_device + gpu->to_host + gpu->on_device;
  NamedDeviceTensors outputs;
  for (int run = 0; run < 3; ++run) {
    outputs = session.enqueue(inputs, {});
    session.synchronize();
    const auto timing = session.run_timing();
    ASSERT_TRUE(timing);
    EXPECT_EQ(timing->host_to_device_us, 0);
    EXPECT_EQ(timing->device_to_host_us, 0);
    EXPECT_DOUBLE_EQ(timing->compute_us, session.launches() * kKernelMs * 1e3);
  }
  EXPECT_EQ(gpu->to_device + gpu->to_host + gpu->on_device, before);
  const NamedTensors fetched = session.to_host(outputs);
  EXPECT_EQ(fetched.at("y").dims(), (Dims{64, 16}));
  EXPECT_EQ(fetched.at("z").dims(), (Dims{64, 32}));
}

TEST_F(Timing, TensorsGoToTheDeviceAndBack) {
  Session session(compile(model(kExp)), options);
  const Tensor x = vector_of(100);
  const NamedTensors back = session.to_host(session.to_device({{"x", x}}));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(back.at("x").as<float>()[i], x.as<float>()[i]);
  const size_t used = gpu->used;
  session.to_device({{"x", x}});
  EXPECT_EQ(gpu->used, used) << "the owner of a device tensor frees it";
}

// Of kernels that take different times, and of the product library.
TEST_F(Timing, ProfilesEveryCall) {
  gpu->kernel_ms = [](const std::string& text, unsigned) {
    return text.find("tanh") != std::string::npos ? 11.0 : 5.0;
  };
  const Program program = compile(model(kTwoInputs));
  Session session(program, options);
  session.profile(true);
  for (int run = 0; run < 2; ++run) {
    session.run(inputs_);
    ASSERT_EQ(session.step_times().size(), program.steps().size());
    double total = 0;
    int calls = 0;
    for (const StepTime& step : session.step_times()) {
      double of_kernels = 0;
      EXPECT_DOUBLE_EQ(step.start_us, total);
      for (const KernelTime& kernel : step.kernels) {
        EXPECT_DOUBLE_EQ(kernel.start_us, total + of_kernels);
        of_kernels += kernel.duration_us;
        ++calls;
      }
      EXPECT_DOUBLE_EQ(step.duration_us, of_kernels);
      total += of_kernels;
    }
    EXPECT_EQ(calls, session.launches());
    const StepTime& last = session.step_times().back();
    EXPECT_DOUBLE_EQ(last.duration_us, last.label.find("Tanh") != std::string::npos ? 11e3 : 5e3);
  }
  gpu->lost_captures = 1;
  session.run(inputs_);
  EXPECT_EQ(session.step_times().size(), program.steps().size()) << "call by call";
}

TEST_F(Timing, BytesOfAStep) {
  struct Case {
    const char* graph;
    int64_t bytes;  // of the only step with any
  };
  const Case cases[] = {
      {"g (float[64] x) => (float[64] y) { y = Exp(x) }", 4 * 128},
      {"g (float[8, 64] x, float[64] b) => (float[8, 64] y) { y = Add(x, b) }",
       4 * (512 + 64 + 512)},
      {"g (float[8, 64] x) => (float[8, 64] y) { y = Softmax<axis = -1>(x) }", 4 * 1024},
      {"g (float[64] t, int64[8] i) => (float[8] y) { y = Gather(t, i) }", 0},
      {"g (float[64] x) => (float[16] y) { "
       "a = Constant<value = int64[1] {0}>() b = Constant<value = int64[1] {16}>() "
       "s = Slice(x, a, b) y = Exp(s) }",
       4 * 32},
  };
  for (const Case& c : cases) {
    const Model parsed = model(c.graph);
    Session session(compile(parsed), options);
    session.profile(true);
    NamedTensors inputs;
    for (const ValueInfo& info : parsed.inputs()) {
      Dims dims;
      for (const auto& dim : info.dims) dims.push_back(dim.size);
      Tensor tensor(info.dtype, dims);
      std::fill_n(tensor.as<char>(), tensor.bytes(), '\0');
      inputs[info.name] = tensor;
    }
    session.run(inputs);
    int64_t bytes = 0;
    for (const StepTime& step : session.step_times()) bytes += step.bytes;
    EXPECT_EQ(bytes, c.bytes) << c.graph;
  }
}

TEST_F(Timing, ClocksOfTheGpu) {
  Session session(compile(model(kExp)), options);
  const auto state = session.device_state();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->sm_mhz, 1755);
  EXPECT_EQ(state->memory_mhz, 2619);
  EXPECT_EQ(state->max_sm_mhz, 1980);
  EXPECT_EQ(state->temperature_c, 41);
  EXPECT_DOUBLE_EQ(state->power_w, 312.5);
  EXPECT_EQ(state->note, "");
  gpu->bus = "0000:20:00.0";
  const auto hidden = session.device_state();
  EXPECT_EQ(hidden->sm_mhz, 0);
  EXPECT_EQ(hidden->max_sm_mhz, 1980);
  expect_mentions(hidden->note, "0000:19:00.0");
}

TEST_F(Timing, NothingOfADeviceOnTheCpu) {
  options.device = "cpu";
  Session session(compile(model(kExp)), options);
  session.time_runs(true);
  session.run({{"x", vector_of(10)}});
  session.synchronize();
  EXPECT_FALSE(session.run_timing());
  EXPECT_FALSE(session.device_state());
  expect_mentions(error_of([&] { session.to_device({{"x", vector_of(10)}}); }), "on cuda");
  expect_mentions(error_of([&] { session.to_host({}); }), "on cuda");
}

}  // namespace
}  // namespace redfuser::device_tests
