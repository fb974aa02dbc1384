// Runs on the caller's GPU memory and streams; skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "cuda/driver.h"
#include "redfuser/device.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

class CudaEnqueue : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
    device_ = cuda::Device::open();
    stream_ = std::make_unique<cuda::Stream>(device_);
    options_.device = "cuda";
  }

  static Model model(const std::string& graph) {
    return Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
  }

  DeviceTensor on_device(const Tensor& tensor) {
    const auto bytes = static_cast<int64_t>(tensor.bytes());
    auto buffer = std::make_shared<cuda::Buffer>(device_, bytes, "a test's tensor");
    stream_->to_device(buffer->address(), tensor.data(), bytes);
    stream_->synchronize();
    return {tensor.dtype(), tensor.dims(), reinterpret_cast<void*>(buffer->address()), false,
            buffer};
  }

  Tensor fetch(const DeviceTensor& tensor) {
    Tensor host(tensor.dtype, tensor.dims);
    stream_->to_host(host.mutable_data(), reinterpret_cast<cuda::DevicePointer>(tensor.data),
                     static_cast<int64_t>(host.bytes()));
    stream_->synchronize();
    return host;
  }

  static void expect_same(const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.dims(), b.dims());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
  }

  cuda::DevicePtr device_;
  std::unique_ptr<cuda::Stream> stream_;
  SessionOptions options_;
};

TEST_F(CudaEnqueue, GivesTheSameBitsAsRun) {
  const Model m = model(
      "g (float[b, n] x, float[n, 8] w) => (float[b, 8] y, float[b, n] p) {"
      "  p = Softmax<axis = -1>(x) q = MatMul(p, w) y = Tanh(q) }");
  const Program program = compile(m);
  Session session(program, options_), other(program, options_);
  RandomOptions random;
  random.symbols = {{"b", 33}, {"n", 64}};
  const NamedTensors inputs = random_inputs(m, random);
  const NamedTensors expected = other.run(inputs);
  const NamedDeviceTensors given = {{"x", on_device(inputs.at("x"))},
                                    {"w", on_device(inputs.at("w"))}};
  const DeviceTensor y = on_device(Tensor(DType::Float32, {33, 8}));
  for (int run = 0; run < 4; ++run) {
    const NamedDeviceTensors outputs = session.enqueue(given, {{"y", y}}, stream_->handle());
    expect_same(fetch(y), expected.at("y"));
    expect_same(fetch(outputs.at("p")), expected.at("p"));
  }
  // Other addresses.
  const DeviceTensor z = on_device(Tensor(DType::Float32, {33, 8}));
  session.enqueue({{"x", on_device(inputs.at("x"))}, {"w", given.at("w")}}, {{"y", z}},
                  stream_->handle());
  expect_same(fetch(z), expected.at("y"));
}

TEST_F(CudaEnqueue, UpdatesACacheInPlace) {
  const Model m = model(
      "g (float[8, 16] past, int64[2, 1] at, float[2, 16] rows) => (float[8, 16] present, "
      "float[8] sums) { present = ScatterND(past, at, rows)"
      "  one = Constant<value = int64[1] {1}>() sums = ReduceSum<keepdims = 0>(present, one) }");
  const Program program = compile(m);
  Session session(program, options_), cpu(program);
  NamedTensors inputs = random_inputs(m, {});
  const DeviceTensor cache = on_device(inputs.at("past"));
  for (int64_t step = 0; step < 4; ++step) {
    inputs.at("at").as<int64_t>()[0] = step;
    inputs.at("at").as<int64_t>()[1] = 7 - step;
    const NamedTensors expected = cpu.run(inputs);
    session.enqueue({{"past", cache},
                     {"at", on_device(inputs.at("at"))},
                     {"rows", on_device(inputs.at("rows"))}},
                    {{"present", cache}}, stream_->handle());
    expect_same(fetch(cache), expected.at("present"));
    inputs.at("past") = expected.at("present");
  }
}

TEST_F(CudaEnqueue, ThreadsShareAProgram) {
  const Model m = model(
      "g (float[b, n] x, float[n, 8] w) => (float[b, 8] y) {"
      "  p = Softmax<axis = -1>(x) q = MatMul(p, w) y = Tanh(q) }");
  const Program program = compile(m);
  const Session keeps(program, options_);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      RandomOptions random;
      random.seed = static_cast<uint64_t>(thread);
      random.symbols = {{"b", 20 + thread}, {"n", 100 + thread}};
      const NamedTensors inputs = random_inputs(m, random);
      Session session(program, options_);
      const NamedTensors expected = session.run(inputs);
      for (int run = 0; run < 20; ++run) expect_same(session.run(inputs).at("y"), expected.at("y"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace redfuser
