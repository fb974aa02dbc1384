// Sessions: checks, results, memory and reports of a run.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "support/text_model.h"

namespace redfuser {
namespace {

constexpr const char* kSoftmax =
    "g (float[batch, n] x, float[batch, n] mask) => (float[batch, n] y) {"
    "  s = Add(x, mask)"
    "  y = Softmax<axis = -1>(s)"
    "}";

Tensor filled(Dims dims, float value) {
  Tensor tensor(DType::Float32, std::move(dims));
  std::fill(tensor.as<float>(), tensor.as<float>() + tensor.size(), value);
  return tensor;
}

Program compile_text(const std::string& text, bool fuse = true) {
  const TextModel file(text);
  CompileOptions options;
  options.fuse = fuse;
  return compile(Model::load(file.path()), options);
}

std::string error_of(const Program& program, const NamedTensors& inputs,
                     const SessionOptions& options = {}) {
  Session session(program, options);
  try {
    session.run(inputs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void expect_mentions(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

TEST(Session, RunsFusedAndUnfused) {
  for (const bool fuse : {false, true}) {
    Session session(compile_text(kSoftmax, fuse));
    const Tensor y = session.run({{"x", filled({2, 4}, 3)}, {"mask", filled({2, 4}, 0)}}).at("y");
    ASSERT_EQ(y.dims(), (Dims{2, 4}));
    for (int64_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y.as<float>()[i], 0.25f, 1e-6);
  }
}

TEST(Session, AnExceptionFromProgressEndsTheRun) {
  struct Stop {};
  for (const char* device : {"cpu", "reference"}) {
    SessionOptions options;
    options.device = device;
    Session session(compile_text(kSoftmax, false), options);
    const NamedTensors inputs{{"x", filled({2, 4}, 3)}, {"mask", filled({2, 4}, 0)}};
    session.on_progress([](int, int) { throw Stop(); });
    EXPECT_THROW(session.run(inputs), Stop);
    session.on_progress(nullptr);
    EXPECT_NEAR(session.run(inputs).at("y").as<float>()[0], 0.25f, 1e-6);
  }
}

TEST(Session, OutputsShareTheirMemoryWithNothing) {
  constexpr const char* kShared =
      "g (float[n] x) => (float[n] a, float[n] b, float[n] c, float[2] d, float[2] e) {"
      "  a = Exp(x)"
      "  b = Identity(a)"
      "  c = Identity(x)"
      "  d = Constant<value = float[2] {1, 2}>()"
      "  e = Identity(d)"
      "}";
  for (const char* device : {"cpu", "reference"}) {
    SessionOptions options;
    options.device = device;
    Session session(compile_text(kShared), options);
    const Tensor x = filled({2}, 0);
    for (int run = 0; run < 2; ++run) {
      NamedTensors outputs = session.run({{"x", x}});
      const std::vector<float> wanted{1, 1, 0, 1, 1};
      size_t next = 0;
      for (auto& [name, tensor] : outputs) {
        EXPECT_EQ(tensor.as<float>()[0], wanted[next++]) << name;
        tensor.as<float>()[0] = 7;
      }
      EXPECT_EQ(x.as<float>()[0], 0);
    }
  }
}

TEST(Session, OneProgramServesManyShapes) {
  Session session(compile_text(kSoftmax));
  for (const Dims& dims : {Dims{1, 1}, Dims{3, 7}, Dims{2, 300}, Dims{0, 5}, Dims{5, 0}}) {
    const Tensor y = session.run({{"x", filled(dims, 1)}, {"mask", filled(dims, 0)}}).at("y");
    EXPECT_EQ(y.dims(), dims);
  }
}

TEST(Session, NamesWhatIsWrongWithInputs) {
  const Program program = compile_text(kSoftmax);
  const Tensor good = filled({2, 4}, 1);
  expect_mentions(error_of(program, {{"x", good}, {"msak", good}}), "did you mean \"mask\"?");
  expect_mentions(error_of(program, {{"x", good}}),
                  "input \"mask\" is missing: the model takes float32[batch,n]");
  expect_mentions(error_of(program, {{"x", Tensor(DType::Int64, {2, 4})}, {"mask", good}}),
                  "input \"x\" is int64[2,4], but the model takes float32[batch,n]");
  expect_mentions(error_of(program, {{"x", filled({8}, 1)}, {"mask", good}}), "1 dimensions");
  // The map orders inputs by name, the model binds them in its own order.
  EXPECT_EQ(error_of(program, {{"x", good}, {"mask", filled({2, 5}, 1)}}),
            "input \"mask\" dimension 1 is 5, but \"n\" is 4, bound by input \"x\"");
}

TEST(Session, ChecksFixedDimensions) {
  const Program program = compile_text("g (float[2, 3] x) => (float[2, 3] y) { y = Neg(x) }");
  expect_mentions(error_of(program, {{"x", filled({2, 4}, 1)}}),
                  "input \"x\" dimension 1 is 4, but the model takes 3");
}

TEST(Session, OutputsDoNotShareTheCallersMemory) {
  Session session(compile_text("g (float[n] x) => (float[n] y) { y = Identity(x) }"));
  std::vector<float> memory = {1, 2, 3};
  const Tensor x = Tensor::wrap(DType::Float32, {3}, memory.data(), nullptr);
  const Tensor y = session.run({{"x", x}}).at("y");
  memory.assign(3, 9);
  EXPECT_EQ(y.as<float>()[0], 1);
}

TEST(Session, NotANumberStaysWhereItIs) {
  Session session(compile_text(kSoftmax));
  Tensor x = filled({2, 3}, 1);
  x.as<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = session.run({{"x", x}, {"mask", filled({2, 3}, 0)}}).at("y");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y.as<float>()[i]));
  for (int i = 3; i < 6; ++i) EXPECT_NEAR(y.as<float>()[i], 1.0f / 3, 1e-6);
}

TEST(Session, CountsLiveBytes) {
  // Four values of 4000 bytes, two alive at a time.
  Session session(
      compile_text("g (float[n] x) => (float[n] y) {"
                   "  a = Exp(x) b = Sin(a) c = Cos(b) y = Tanh(c) }",
                   false));
  session.run({{"x", filled({1000}, 0.5f)}});
  EXPECT_EQ(session.peak_bytes(), 8000);
}

TEST(Session, KeepsToTheMemoryLimit) {
  const Program program = compile_text("g (float[n] x) => (float[n] y) { y = Exp(x) }", false);
  SessionOptions options;
  options.memory_limit = 1000;
  EXPECT_EQ(error_of(program, {{"x", filled({250}, 1)}}, options), "no error");
  expect_mentions(error_of(program, {{"x", filled({251}, 1)}}, options), "needs 1004 bytes");
}

TEST(Session, ReportsStepsAndProgress) {
  const Program program = compile_text(kSoftmax, false);
  Session session(program);
  session.profile(true);
  std::vector<std::pair<int, int>> progress;
  session.on_progress([&](int done, int all) { progress.emplace_back(done, all); });
  session.run({{"x", filled({2, 4}, 3)}, {"mask", filled({2, 4}, 0)}});
  const int steps = static_cast<int>(program.steps().size());
  ASSERT_EQ(session.step_times().size(), program.steps().size());
  for (const StepTime& time : session.step_times()) EXPECT_GE(time.duration_us, 0);
  ASSERT_EQ(progress.size(), program.steps().size() + 1);
  EXPECT_EQ(progress.front(), (std::pair{0, steps}));
  EXPECT_EQ(progress.back(), (std::pair{steps, steps}));
}

TEST(Session, KeepsValuesByName) {
  Session session(compile_text(kSoftmax, false));
  const NamedTensors inputs = {{"x", filled({2, 4}, 3)}, {"mask", filled({2, 4}, 1)}};
  session.run(inputs);
  EXPECT_TRUE(session.kept_values().empty());
  session.keep_values(std::vector<std::string>{"s"});
  session.run(inputs);
  ASSERT_EQ(session.kept_values().size(), 1u);
  EXPECT_EQ(session.kept_values().at("s").as<float>()[0], 4);
  session.keep_values(true);
  session.run(inputs);
  EXPECT_GE(session.kept_values().size(), 2u);
}

TEST(Session, FailedRunLeavesItUsable) {
  Session session(compile_text(kSoftmax));
  EXPECT_THROW(session.run({}), UserError);
  EXPECT_EQ(session.run({{"x", filled({1, 2}, 0)}, {"mask", filled({1, 2}, 0)}}).size(), 1u);
}

TEST(Session, BindsSizesThatTheDataDecide) {
  // Each size is known only once its input's contents are.
  for (const bool fuse : {true, false}) {
    Session session(
        compile_text("g (float[n] x, int64[2] shape) =>"
                     "  (float[a, b] y, int64[1, c] z, float[d] zeros) {"
                     "  p = Softmax<axis = -1>(x)"
                     "  r = Reshape(p, shape)"
                     "  y = Add(r, r)"
                     "  z = NonZero(x)"
                     "  positive = Relu(x)"
                     "  only_its_size = NonZero(positive)"
                     "  count = Shape<start = 1>(only_its_size)"
                     "  zeros = ConstantOfShape(count) }",
                     fuse));
    for (const int64_t rows : {2, 3}) {
      Tensor shape(DType::Int64, {2});
      shape.as<int64_t>()[0] = rows;
      shape.as<int64_t>()[1] = -1;
      Tensor x = filled({12}, 0);
      for (int64_t i = 0; i < rows; ++i) x.as<float>()[i] = 1;
      const NamedTensors outputs = session.run({{"x", x}, {"shape", shape}});
      EXPECT_EQ(outputs.at("y").dims(), (Dims{rows, 12 / rows}));
      EXPECT_EQ(outputs.at("z").dims(), (Dims{1, rows}));
      EXPECT_EQ(outputs.at("zeros").dims(), (Dims{rows}));
      shape.as<int64_t>()[0] = 5;
      EXPECT_THROW(session.run({{"x", x}, {"shape", shape}}), UserError);
    }
  }
}

TEST(Session, ThreadsShareAProgram) {
  const TextModel file(kSoftmax);
  const Model model = Model::load(file.path());
  const Program program = compile(model);
  const NamedTensors inputs = random_inputs(model, {.symbols = {{"batch", 8}, {"n", 65}}});
  const NamedTensors expected = Session(program, {.threads = 1}).run(inputs);
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Session session(program, {.threads = 2});
      for (int run = 0; run < 20; ++run) {
        if (compare("y", session.run(inputs).at("y"), expected.at("y"), {0, 0}).passed) ++equal;
        // Compiling extends the model's expressions while others run.
        if (run == 10) compile(model, {.certify = false});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 80);
}

}  // namespace
}  // namespace redfuser
