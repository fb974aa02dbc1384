// Steps that the GPU has no kernels for: the CPU computes them. The fake GPU's kernels compute
// nothing, so values are compared where the CPU computes them.
#include <algorithm>
#include <cmath>

#include "fake_cuda/device_harness.h"
#include "redfuser/error.h"

namespace redfuser::device_tests {
namespace {

class HostSteps : public FakeGpu {
 protected:
  static constexpr const char* kSigns =
      "g (float[n] x) => (float[m] where, int64[m] first, float[m] picked) {"
      " where, first = Unique(x) picked = Gather(x, first) }";
  static constexpr const char* kDeterminants =
      "g (float[n, 5, 5] x) => (float[n] y) { y = Det(x) }";

  static NamedTensors cpu(const std::string& graph, const NamedTensors& inputs) {
    SessionOptions options;
    options.device = "cpu";
    return Session(compile(model(graph)), options).run(inputs);
  }
  static void expect_same(const NamedTensors& got, const NamedTensors& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (const auto& [name, tensor] : wanted) {
      const Tensor& other = got.at(name);
      ASSERT_EQ(other.dims(), tensor.dims()) << name;
      EXPECT_TRUE(
          std::equal(tensor.as<char>(), tensor.as<char>() + tensor.bytes(), other.as<char>()))
          << name;
    }
  }
  // The same places, and as many elements.
  static void expect_sizes_of(const NamedTensors& got, const NamedTensors& wanted) {
    expect_same({{"where", got.at("where")}}, {{"where", wanted.at("where")}});
    EXPECT_EQ(got.at("picked").dims(), wanted.at("picked").dims());
  }
  static bool notes_mention(const Session& session, const std::string& part) {
    return std::any_of(
        session.notes().begin(), session.notes().end(),
        [&](const std::string& note) { return note.find(part) != std::string::npos; });
  }
  static Tensor signs(int64_t n) {
    Tensor x = vector_of(n);
    for (int64_t i = 0; i < n; ++i) x.as<float>()[i] = i % 3 == 0 ? 0.0f : static_cast<float>(-i);
    return x;
  }
};

TEST_F(HostSteps, AnOperatorWithoutAKernel) {
  Session session(compile(model(kDeterminants)), options);
  EXPECT_TRUE(notes_mention(session, "the CPU computes 1 step: [Det] node"));
  for (const int64_t n : {2, 3, 2, 2}) {
    const NamedTensors inputs = {{"x", vector_of(25 * n).reshaped({n, 5, 5})}};
    expect_same(session.run(inputs), cpu(kDeterminants, inputs));
  }
  EXPECT_EQ(gpu->recorded, 0);
}

TEST_F(HostSteps, SizesThatDependOnData) {
  Session session(compile(model(kSigns)), options);
  EXPECT_TRUE(notes_mention(session, "the size of \"where\" depends on data"));
  for (const int64_t n : {9, 4, 9, 1}) {
    const NamedTensors inputs = {{"x", signs(n)}};
    expect_sizes_of(session.run(inputs), cpu(kSigns, inputs));
  }
  EXPECT_FALSE(gpu->launches.empty());  // the GPU gathers the elements
}

TEST_F(HostSteps, ResultsGoBackToTheGpu) {
  const char* graph =
      "g (float[n] x, float[4, 8] w) => (float[4, 8] z) {"
      " one = Constant<value = int64[1] {1}>() four = Constant<value = int64[1] {4}>()"
      " i = Unique(x) f = ReduceSum<keepdims = 0>(i) z = Mul(f, w) }";
  Session session(compile(model(graph)), options);
  const NamedTensors inputs = {{"x", signs(6)}, {"w", Tensor(DType::Float32, {4, 8})}};
  // What comes behind the CPU's step is a program of its own, with a CUDA graph from the second run
  // on.
  for (int i = 0; i < 3; ++i) session.run(inputs);
  EXPECT_EQ(gpu->launches.size(), 2u);
  EXPECT_EQ(gpu->recorded, 2);
}

TEST_F(HostSteps, StringsStayOnTheHost) {
  const char* graph = "g (string[n] a, string[n] b) => (string[n] c) { c = StringConcat(a, b) }";
  Session session(compile(model(graph)), options);
  const Tensor a = Tensor::strings({2}, {"left", ""}),
               b = Tensor::strings({2}, {" right", "alone"});
  for (int i = 0; i < 2; ++i) {
    const NamedTensors outputs = session.run({{"a", a}, {"b", b}});
    EXPECT_EQ(outputs.at("c").text(0), "left right");
    EXPECT_EQ(outputs.at("c").text(1), "alone");
  }
}

TEST_F(HostSteps, RunsOnTheCallersMemory) {
  Session session(compile(model(kSigns)), options);
  const Tensor x = signs(9);
  const NamedDeviceTensors inputs = session.to_device({{"x", x}});
  const NamedDeviceTensors outputs = session.enqueue(inputs, {});
  EXPECT_TRUE(outputs.at("where").on_host);
  EXPECT_FALSE(outputs.at("picked").on_host);
  expect_sizes_of(session.to_host(outputs), cpu(kSigns, {{"x", x}}));
  const auto error_with = [&](const char* output) {
    return error_of([&] { session.enqueue(inputs, {{output, inputs.at("x")}}); });
  };
  expect_mentions(error_with("where"), "output \"where\" is made in host memory");
  expect_mentions(error_with("picked"), "is given memory for float32[9], but it is float32[7]");
  expect_mentions(error_with("other"), "the model has no output \"other\"");
}

TEST_F(HostSteps, AreInTheProfile) {
  Session session(compile(model(kDeterminants)), options);
  session.profile(true);
  session.run({{"x", vector_of(50).reshaped({2, 5, 5})}});
  ASSERT_EQ(session.step_times().size(), 1u);
  ASSERT_EQ(session.step_times()[0].kernels.size(), 1u);
  EXPECT_EQ(session.step_times()[0].kernels[0].name, "CPU, with copies");
}

// So that a run that does not end can be ended with the name of its step.
TEST_F(HostSteps, AreToldBeforeTheyRun) {
  const Program program = compile(model(kSigns));
  Session session(program, options);
  std::vector<std::string> told;
  session.on_progress([&](int step, int total) {
    EXPECT_EQ(total, static_cast<int>(program.steps().size()));
    if (step < total) told.push_back(program.steps()[static_cast<size_t>(step)].label);
  });
  session.run({{"x", signs(5)}});
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const std::string& label) {
    return label.find("Unique") != std::string::npos;
  }));
}

TEST_F(HostSteps, TheCpusErrorsNameTheNode) {
  const char* graph =
      "g (float[n] x, int64[1] i) => (float[1, m] y) {"
      " p = Unique(x) r = Constant<value = int64[2] {1, -1}>() q = Reshape(p, r)"
      " y = Gather<axis = 1>(q, i) }";
  Session session(compile(model(graph)), options);
  Tensor far(DType::Int64, {1});
  far.as<int64_t>()[0] = 100;
  expect_mentions(error_of([&] { session.run({{"x", signs(5)}, {"i", far}}); }), "[Gather] node");
}

TEST_F(HostSteps, AutoTakesTheGpuForProductsOnly) {
  options.device = "auto";
  const Session light(compile(model(kSigns)), options);
  EXPECT_EQ(light.device(), "cpu");
  EXPECT_TRUE(notes_mention(light, "running on the CPU, not the GPU: the CPU computes"));
  const Session heavy(compile(model("g (float[8, 64] x, float[64, 32] w) => (float[m] y) {"
                                    " p = MatMul(x, w) r = Relu(p) y = Unique(r) }")),
                      options);
  EXPECT_EQ(heavy.device(), "Fake GPU");
}

}  // namespace
}  // namespace redfuser::device_tests
