// Sessions on a GPU; skipped where there is none.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "redfuser/compare.h"
#include "redfuser/convert.h"
#include "redfuser/inputs.h"
#include "redfuser/io.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/test_paths.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMixed =
    "<ir_version: 9, opset_import: [\"\" : 20]> "
    "g (float[batch, n] x, float[n, 8] w) => (float[batch, 8] y, float[batch, n] p) {"
    "  p = Softmax<axis = -1>(x)"
    "  q = MatMul(p, w)"
    "  y = Tanh(q)"
    "}";

SessionOptions on_gpu() {
  SessionOptions options;
  options.device = "cuda";
  return options;
}

class CudaSession : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }
};

NamedTensors inputs_for(const Model& model, int64_t batch, int64_t n, uint64_t seed = 0) {
  RandomOptions options;
  options.seed = seed;
  options.symbols = {{"batch", batch}, {"n", n}};
  return random_inputs(model, options);
}

void expect_equal(const NamedTensors& got, const NamedTensors& expected,
                  const Tolerance& tolerance = {}) {
  for (const Comparison& comparison : compare(got, expected, tolerance)) {
    EXPECT_TRUE(comparison.passed) << describe(comparison);
  }
}

TEST(Session, CudaWithoutAGpuSaysWhatIsMissing) {
  if (runtime::has_gpu()) GTEST_SKIP() << "there is a GPU";
  const Program program = compile(Model::parse(kMixed));
  try {
    Session session(program, on_gpu());
    ADD_FAILURE() << "it started";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("CUDA driver"), std::string::npos) << error.what();
  }
  SessionOptions options;
  options.device = "auto";
  EXPECT_EQ(Session(program, options).device(), "cpu");
  options.device = "tpu";
  EXPECT_THROW(Session(program, options), UserError);
}

TEST_F(CudaSession, RunsManyShapes) {
  const Model model = Model::parse(kMixed);
  const Program program = compile(model);
  Session gpu(program, on_gpu()), cpu(program);
  for (int round = 0; round < 3; ++round) {
    for (const int64_t n : {1, 2, 7, 1023, 1025, 33, 34, 35, 36, 37}) {
      const NamedTensors inputs = inputs_for(model, 5, n, static_cast<uint64_t>(round));
      expect_equal(gpu.run(inputs), cpu.run(inputs));
    }
  }
  EXPECT_GT(gpu.peak_bytes(), 0);
}

TEST_F(CudaSession, EmptyTensors) {
  const Model model = Model::parse(kMixed);
  Session session(compile(model), on_gpu());
  const NamedTensors outputs = session.run(inputs_for(model, 0, 4));
  EXPECT_EQ(outputs.at("y").dims(), (Dims{0, 8}));
}

TEST_F(CudaSession, ProfilesAndKeepsValues) {
  const Model model = Model::parse(kMixed);
  const Program program = compile(model);
  Session gpu(program, on_gpu()), cpu(program);
  for (Session* session : {&gpu, &cpu}) {
    session->profile(true);
    session->keep_values(true);
  }
  const NamedTensors inputs = inputs_for(model, 3, 40);
  expect_equal(gpu.run(inputs), cpu.run(inputs));
  expect_equal(gpu.kept_values(), cpu.kept_values());
  EXPECT_EQ(gpu.step_times().size(), program.steps().size());
}

TEST_F(CudaSession, RespectsTheMemoryLimit) {
  const Model model = Model::parse(kMixed);
  SessionOptions options = on_gpu();
  options.memory_limit = 64 << 20;
  Session session(compile(model), options);
  session.run(inputs_for(model, 4, 4));
  EXPECT_THROW(session.run(inputs_for(model, 4096, 4096)), UserError);
  session.run(inputs_for(model, 4, 4));
}

TEST_F(CudaSession, TheSameBitsTwice) {
  const Model model = Model::parse(kMixed);
  Session session(compile(model), on_gpu());
  const NamedTensors inputs = inputs_for(model, 64, 5000);
  expect_equal(session.run(inputs), session.run(inputs), {0, 0});
}

TEST_F(CudaSession, TimesOnTheDevice) {
  const Model model = Model::parse(kMixed);
  Session session(compile(model), on_gpu());
  const DeviceTiming timing = session.time_on_device(inputs_for(model, 64, 500), 0.01);
  EXPECT_GT(timing.median_us, 0);
  EXPECT_GE(timing.median_us, timing.min_us);
  EXPECT_THROW(Session(compile(model)).time_on_device({}, 0.01), UserError);
}

class CudaModels : public testing::TestWithParam<std::string> {};

TEST_P(CudaModels, MatchTheirOutputs) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const fs::path folder = fs::path(test_paths::models()) / GetParam();
  const Model model = Model::load((folder / "model.onnx").string());
  Session session(compile(model), on_gpu());
  const NamedTensors inputs = load_tensors((folder / "inputs.npz").string(), model, Role::Inputs);
  const NamedTensors expected =
      load_tensors((folder / "outputs.npz").string(), model, Role::Outputs);
  for (int run = 0; run < 3; ++run) expect_equal(session.run(inputs), expected);
}

double largest_magnitude(const NamedTensors& tensors) {
  double largest = 0;
  for (const auto& [name, tensor] : tensors) {
    const Summary summary = summarize(tensor);
    largest = std::max({largest, std::fabs(summary.min), std::fabs(summary.max)});
  }
  return largest;
}

TEST_P(CudaModels, MatchTheirOutputsInFp16) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const fs::path folder = fs::path(test_paths::models()) / GetParam();
  const Model model =
      convert(Model::load((folder / "model.onnx").string()), {DType::Float16, true}).model;
  Session session(compile(model), on_gpu());
  const NamedTensors inputs = load_tensors((folder / "inputs.npz").string(), model, Role::Inputs);
  const NamedTensors expected =
      load_tensors((folder / "outputs.npz").string(), model, Role::Outputs);
  const double bound = 2e-2 * largest_magnitude(expected);
  for (int run = 0; run < 3; ++run) expect_equal(session.run(inputs), expected, {0, bound});
}

std::vector<std::string> model_folders() {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(test_paths::models(), error)) {
    if (fs::exists(entry.path() / "outputs.npz")) folders.push_back(entry.path().filename());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

INSTANTIATE_TEST_SUITE_P(Folder, CudaModels, testing::ValuesIn(model_folders()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace redfuser
